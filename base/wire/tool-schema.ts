/** The schema of a tool's arguments: as a value for readers, and as text where JavaScript would write other numbers. */
import type { Tool } from "../schema/message.ts";
import { parseAsWritten, writtenText } from "./written-numbers.ts";

type ToolSchema = Pick<Tool, "parameters" | "parameters_source">;

/** The schema of a tool without arguments, for a wire that cannot say that none were declared. */
export const noArguments = { type: "object", properties: {} };

/** `value`: the very object that stood in the body. */
export function toolSchema(value: unknown): ToolSchema {
  const text = writtenText(value);
  return { parameters: (value as Tool["parameters"] | undefined) ?? null, ...(text !== undefined && { parameters_source: text }) };
}

/** The schema for JSON.stringify alone, which writes its numbers as the harness did: a template prints them to the model. */
export function schemaAsWritten({ parameters, parameters_source }: ToolSchema): Tool["parameters"] {
  return parameters_source === undefined ? parameters : (parseAsWritten(parameters_source) as Tool["parameters"]);
}
