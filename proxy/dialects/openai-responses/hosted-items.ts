/** Items of tools that ran at OpenAI, each a call and what it brought in one: as a call and its result. */
import { z } from "zod";
import type { ContentPart, Message, ToolCallPart } from "../../../base/schema/message.ts";
import { checked, isObject, type JsonObject } from "../edge.ts";
import { hostedCall, hostedResult, picked, shownValue } from "../left-out/hosted-history.ts";

type Ran = { name: string; input: unknown; content: ContentPart[]; is_error?: boolean };

const McpCall = z.looseObject({ server_label: z.string(), name: z.string(), arguments: z.string().nullish() });
const Outputs = z.array(z.looseObject({ type: z.string() })).nullish();

const hostedItems: ReadonlyMap<string, (item: JsonObject, at: string) => Ran> = new Map(
  Object.entries({
    web_search_call: ({ action }) => ({
      name: "web_search",
      input: isObject(action) ? { ...action, sources: undefined } : {},
      content: shownValue(isObject(action) ? action.sources : undefined),
    }),
    file_search_call: (item) => ({ name: "file_search", input: picked(item, ["queries"]), content: shownValue(item.results) }),
    code_interpreter_call: (item, at) => ({
      name: "code_interpreter",
      input: picked(item, ["code"]),
      content: (checked(Outputs, item.outputs, `${at}.outputs`) ?? []).flatMap(codeOutput),
    }),
    image_generation_call: (item) => ({
      name: "image_generation",
      input: picked({ ...item, prompt: item.revised_prompt }, ["prompt", "size", "quality", "background"]),
      content: typeof item.result === "string" ? [{ type: "image", url: imageUrl(item.result, item.output_format) }] : [],
    }),
    mcp_call: (item, at) => {
      const { server_label, name, arguments: input } = checked(McpCall, item, at);
      const error = shownValue(item.error);
      return {
        name: `${server_label}__${name}`,
        input: input ?? {},
        content: [...shownValue(item.output), ...error],
        is_error: error.length > 0,
      };
    },
    mcp_list_tools: (item) => ({
      name: "mcp_list_tools",
      input: picked(item, ["server_label"]),
      content: shownValue(item.tools ?? item.error),
    }),
  } satisfies Record<string, (item: JsonObject, at: string) => Ran>),
);

/** Null for an item of another type. `place`: its place in the input, for items without an id. */
export function hostedItem(item: JsonObject, at: string, place: number): { call: ToolCallPart; result: Message } | null {
  const read = hostedItems.get(String(item.type));
  if (!read) return null;
  const { name, input, content, is_error } = read(item, at);
  const id = typeof item.id === "string" && item.id !== "" ? item.id : `hosted${place}`;
  return { call: hostedCall(id, name, input), result: hostedResult(id, content, is_error) };
}

function codeOutput(output: JsonObject): ContentPart[] {
  return output.type === "image" && typeof output.url === "string"
    ? [{ type: "image", url: output.url }]
    : shownValue(output.logs ?? output);
}

function imageUrl(base64: string, format: unknown): string {
  return base64.startsWith("data:") ? base64 : `data:image/${typeof format === "string" ? format : "png"};base64,${base64}`;
}
