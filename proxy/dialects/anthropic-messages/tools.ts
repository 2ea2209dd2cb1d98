/** Tools and tool choice of a Messages request. */
import { z } from "zod";
import type { Tool, ToolChoice } from "../../../base/schema/message.ts";
import { noArguments, toolSchema } from "../../../base/wire/tool-schema.ts";
import { checked, invalid } from "../edge.ts";
import { refuseClientRun } from "../left-out/client-run.ts";
import { clientTool } from "./client-tools.ts";

const WireTool = z.looseObject({
  type: z.string().nullish(),
  name: z.string().nullish(),
  description: z.string().nullish(),
  input_schema: z.record(z.string(), z.unknown()).nullish(),
  strict: z.boolean().nullish(),
  defer_loading: z.boolean().nullish(),
  input_examples: z.array(z.unknown()).nullish(),
});
const WireChoice = z.looseObject({
  type: z.enum(["auto", "any", "tool", "none"]),
  name: z.string().nullish(),
  disable_parallel_tool_use: z.boolean().nullish(),
});

export type ParsedTools = {
  tools: Tool[];
  /** Types of tools that run at the vendor, so the model here does not get them. */
  hosted: string[];
  /** Tools that the model has not looked up yet. */
  deferred: string[];
  /** Paths of what a tool says to a model and no template has a place for. */
  fields: string[];
};

/** `referenced`: deferred tools that a search in the conversation has brought up. */
export function parseTools(values: unknown, referenced: ReadonlySet<string>): ParsedTools {
  const parsed: ParsedTools = { tools: [], hosted: [], deferred: [], fields: [] };
  for (const [index, value] of checked(z.array(z.unknown()).nullish(), values, "tools")?.entries() ?? []) {
    const at = `tools[${index}]`;
    const tool = checked(WireTool, value, at);
    const declared = declaredTool(tool, value, at);
    if (tool.input_examples?.length) parsed.fields.push("tools[].input_examples");
    if (declared === null) parsed.hosted.push(tool.type ?? "");
    else if (tool.defer_loading && !referenced.has(declared.name)) parsed.deferred.push(declared.name);
    else parsed.tools.push(declared);
  }
  return parsed;
}

/** Null for a tool that runs at the vendor. */
function declaredTool(tool: z.output<typeof WireTool>, value: unknown, at: string): Tool | null {
  const { type, strict } = tool;
  if (!type || type === "custom") {
    if (!tool.name) throw invalid(`${at}.name`, "is missing");
    // The very object that was sent: its numbers are known as they were written.
    return functionTool(tool.name, { ...tool, input_schema: (value as typeof tool).input_schema });
  }
  const known = clientTool(type, value, at);
  if (known !== null) return functionTool(tool.name || known.name, { ...known, strict });
  refuseClientRun(type, `${at}.type`);
  return null;
}

type Declared = Pick<z.output<typeof WireTool>, "description" | "input_schema" | "strict">;

function functionTool(name: string, { description, input_schema, strict }: Declared): Tool {
  return {
    name,
    ...(description != null && { description }),
    ...toolSchema(input_schema ?? noArguments),
    kind: "function",
    ...(strict != null && { strict }),
  };
}

/** `single`: at most one call a turn. */
export function parseToolChoice(value: unknown, tools: Tool[]): { tool_choice: ToolChoice | null; single: boolean } {
  if (value === null || value === undefined) return { tool_choice: null, single: false };
  const choice = checked(WireChoice, value, "tool_choice");
  const single = choice.disable_parallel_tool_use ?? false;
  if (choice.type !== "tool") return { tool_choice: choice.type === "any" ? "required" : choice.type, single };
  if (!tools.some((tool) => tool.name === choice.name)) throw invalid("tool_choice.name", `no tool is named "${choice.name ?? ""}"`);
  return { tool_choice: { name: choice.name ?? "" }, single };
}
