/** Tools and tool choice of a chat completions request. */
import { z } from "zod";
import type { Tool, ToolChoice } from "../../../base/schema/message.ts";
import { checked, invalid, isObject } from "../edge.ts";
import { refuseClientRun } from "../left-out/client-run.ts";
import { customTool } from "../openai/custom-tool.ts";
import { functionTool } from "../openai/function-tool.ts";

// Made once: making a schema costs more than any use of it.
const ToolList = z.array(z.looseObject({})).nullish();
const CustomTool = z.looseObject({ name: z.string().min(1), description: z.string().nullish() });
const AllowedTools = z.looseObject({ mode: z.enum(["auto", "required"]), tools: z.array(z.unknown()) });

/** `hosted`: types of tools that run at the vendor, so the model here does not get them. */
export function parseTools(tools: unknown, webSearch: unknown): { tools: Tool[]; hosted: string[] } {
  const hosted: string[] = isObject(webSearch) ? ["web_search"] : [];
  const parsed: Tool[] = [];
  for (const [index, value] of checked(ToolList, tools, "tools")?.entries() ?? []) {
    const at = `tools[${index}]`;
    const type = value.type ?? "function";
    if (type === "function") parsed.push(functionTool(value.function, `${at}.function`));
    else if (type === "custom") {
      const custom = checked(CustomTool, value.custom, `${at}.custom`);
      parsed.push(customTool(custom.name, custom.description ?? undefined, custom.format));
    } else {
      const other = checked(z.string(), type, `${at}.type`);
      refuseClientRun(other, `${at}.type`);
      hosted.push(other);
    }
  }
  return { tools: parsed, hosted };
}

/** `allowed_tools` says which of the tools may be called now: the others are not shown, for nothing else would stop the model. */
export function parseToolChoice(value: unknown, tools: Tool[]): { tool_choice: ToolChoice | null; tools: Tool[] } {
  const choice = value ?? null;
  if (choice === null) return { tool_choice: null, tools };
  if (choice === "auto" || choice === "none" || choice === "required") return { tool_choice: choice, tools };
  if (!isObject(choice))
    throw invalid("tool_choice", `expected "auto", "none", "required" or an object, received ${JSON.stringify(choice)}`);
  if (choice.type === "allowed_tools") {
    const allowed = checked(AllowedTools, choice.allowed_tools, "tool_choice.allowed_tools");
    const names = allowed.tools.map((tool, index) => namedTool(tool, `tool_choice.allowed_tools.tools[${index}]`, tools));
    return { tool_choice: allowed.mode, tools: tools.filter((tool) => names.includes(tool.name)) };
  }
  return { tool_choice: { name: namedTool(choice, "tool_choice", tools) }, tools };
}

function namedTool(value: unknown, at: string, tools: Tool[]): string {
  const choice = checked(z.looseObject({ type: z.enum(["function", "custom"]) }), value, at);
  const { name } = checked(z.looseObject({ name: z.string() }), choice[choice.type], `${at}.${choice.type}`);
  if (!tools.some((tool) => tool.name === name)) throw invalid(at, `no tool is named "${name}"`);
  return name;
}
