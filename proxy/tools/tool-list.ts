/**
 * Lists the tools of a server for harnesses. Each tool stays as the service wrote it. They are sorted by name, so that
 * equal tasks have equal prompts.
 */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { plainToolName, type ToolServer } from "../../base/schema/environment/tool-servers.ts";
import { jsonItems, jsonMembers } from "../../base/wire/json-members.ts";
import type { ServiceAnswer } from "./mcp.ts";

/** `text`: the list as JSON text. */
export type ServedTools = { names: readonly string[]; text: string };

type ListedTool = { name: string; text: string };

/** Every prompt holds every tool. Larger sets need a search for tools, which no harness here offers. */
const mostTools = 500;
const mostListBytes = 1024 * 1024;
/** Gemini CLI and Codex cut or hash longer names. Then we could not tell which tool was called. */
const longestName = 63;

const Page = z.looseObject({ tools: z.array(z.looseObject({ name: z.string() })), nextCursor: z.string().optional() });

/** Reads all pages of a server's list. Throws if the service does not give one. */
export async function readTools(askPage: (params: string | undefined) => Promise<ServiceAnswer>): Promise<ListedTool[]> {
  const tools: ListedTool[] = [];
  let bytes = 0;
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const answer = await askPage(cursor === undefined ? undefined : JSON.stringify({ cursor }));
    if ("error" in answer) throw new Error(`it does not list its tools: ${answer.error.slice(0, 500)}`);
    const page = Page.safeParse(answer.value);
    if (!page.success) throw new Error("its list of tools has no names");
    const texts = jsonItems(jsonMembers(answer.result).get("tools") ?? "[]");
    tools.push(...page.data.tools.map(({ name }, index) => ({ name, text: texts[index] as string })));
    // A faulty server may repeat a cursor forever, so a page without tools is the last one.
    cursor = texts.length === 0 ? undefined : page.data.nextCursor;
    bytes += answer.result.length;
    if (tools.length > mostTools || bytes > mostListBytes)
      throw new Error(`it lists more than ${mostTools} tools, or more than ${mostListBytes} bytes of them`);
  }
  return tools;
}

/** Throws `task_invalid` if `allow` names a tool that the server lacks, or if harnesses would cut a name. */
export function toList({ name: server, allow }: ToolServer, all: readonly ListedTool[]): ServedTools {
  const complain = (message: string): never => {
    throw new AlidadeError("task_invalid", `environment.tools: the server ${server} ${message}`, { param: "environment.tools" });
  };
  const byName = new Map(all.map((tool) => [tool.name, tool]));
  const missing = (allow ?? []).filter((name) => !byName.has(name));
  if (missing.length > 0) complain(`has no tool ${missing.join(", ")}: allow names of ${[...byName.keys()].join(", ") || "none"}`);
  const tools = [...byName.values()].filter(({ name }) => allow === undefined || allow.includes(name));
  const seen = new Map<string, string>();
  for (const { name } of tools) {
    const whole = `mcp__${server}__${name}`;
    if (whole.length > longestName) complain(`has a tool whose name ${whole} is longer than ${longestName}: choose shorter names`);
    const other = seen.get(plainToolName(name));
    if (other !== undefined) complain(`has the tools ${other} and ${name}, which harnesses call by one name: allow one of them`);
    seen.set(plainToolName(name), name);
  }
  const sorted = tools.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return { names: sorted.map(({ name }) => name), text: `[${sorted.map(({ text }) => text).join(",")}]` };
}
