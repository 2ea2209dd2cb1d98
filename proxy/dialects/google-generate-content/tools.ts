/** Tools and tool configuration of a generateContent request. */
import { z } from "zod";
import type { Tool, ToolChoice } from "../../../base/schema/message.ts";
import { noArguments, toolSchema } from "../../../base/wire/tool-schema.ts";
import { AnyObject, checked, invalid, isObject } from "../edge.ts";
import { computerFunctions } from "./computer-use.ts";
import { toJsonSchema } from "./schema.ts";
import { camelKeys } from "./wire.ts";

const Declaration = z.looseObject({
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
  parametersJsonSchema: z.record(z.string(), z.unknown()).nullish(),
});
const CallingConfig = z.looseObject({ mode: z.string().nullish(), allowedFunctionNames: z.array(z.string()).nullish() });

export type SentTools = {
  tools: Tool[];
  /** Tools that run at Google, so the model here does not get them. */
  hosted: string[];
  /** Paths of what a tool asks of Google beside its functions. */
  fields: string[];
};

/** `model`: as the client named it. */
export function parseTools(values: unknown, model: string): SentTools {
  const parsed: SentTools = { tools: [], hosted: [], fields: [] };
  const predefined: Tool[] = [];
  for (const [index, value] of checked(z.array(z.looseObject({})).nullish(), values, "tools")?.entries() ?? []) {
    const { functionDeclarations, computerUse, ...others } = camelKeys(value);
    const at = `tools[${index}].functionDeclarations`;
    for (const [position, declaration] of checked(z.array(z.looseObject({})).nullish(), functionDeclarations, at)?.entries() ?? [])
      parsed.tools.push(functionOf(camelKeys(declaration), `${at}[${position}]`));
    if (computerUse !== null && computerUse !== undefined) {
      const here = `tools[${index}].computerUse`;
      const { tools, fields } = computerFunctions(camelKeys(checked(AnyObject, computerUse, here)), model, here);
      predefined.push(...tools);
      parsed.fields.push(...fields);
    }
    // Mostly objects, which may be empty; `mcpServers` is a list.
    parsed.hosted.push(...Object.keys(others).filter((name) => (Array.isArray(others[name]) ? others[name].length > 0 : others[name])));
  }
  // A client may declare a predefined function in its own way.
  const names = new Set(parsed.tools.map(({ name }) => name));
  for (const tool of predefined) {
    if (names.has(tool.name)) continue;
    names.add(tool.name);
    parsed.tools.push(tool);
  }
  return parsed;
}

function functionOf(value: Record<string, unknown>, at: string): Tool {
  const declared = checked(Declaration, value, at);
  return {
    name: declared.name,
    ...(declared.description != null && { description: declared.description }),
    ...toolSchema(value.parametersJsonSchema ?? (declared.parameters ? toJsonSchema(declared.parameters) : noArguments)),
    kind: "function",
  };
}

/** `allowedFunctionNames` says which functions may be called now: the others are not shown, for nothing else would stop the model. */
export function parseToolChoice(value: unknown, tools: Tool[]): { tool_choice: ToolChoice | null; tools: Tool[] } {
  const config = checked(z.looseObject({}).nullish(), value, "toolConfig");
  const calling = config ? camelKeys(config).functionCallingConfig : undefined;
  if (calling === undefined || calling === null) return { tool_choice: null, tools };
  const at = "toolConfig.functionCallingConfig";
  const { mode, allowedFunctionNames: allowed } = checked(CallingConfig, isObject(calling) ? camelKeys(calling) : calling, at);
  const choice = modes.get(mode ?? "MODE_UNSPECIFIED");
  if (choice === undefined) throw invalid(`${at}.mode`, `expected AUTO, ANY, NONE or VALIDATED, received ${JSON.stringify(mode)}`);
  if (!allowed?.length || choice === "none") return { tool_choice: choice, tools };
  for (const name of allowed)
    if (!tools.some((tool) => tool.name === name)) throw invalid(`${at}.allowedFunctionNames`, `no function is named "${name}"`);
  const [only] = allowed;
  return {
    tool_choice: choice === "required" && allowed.length === 1 && only !== undefined ? { name: only } : choice,
    tools: tools.filter((tool) => allowed.includes(tool.name)),
  };
}

/** VALIDATED requires calls that fit their schema, as every engine's model should produce anyway. */
const modes = new Map<string, "auto" | "none" | "required" | null>([
  ["MODE_UNSPECIFIED", null],
  ["AUTO", "auto"],
  ["ANY", "required"],
  ["NONE", "none"],
  ["VALIDATED", "auto"],
]);
