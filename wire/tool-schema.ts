/** The schema of a tool's arguments: a value for whoever reads it, and its text where JavaScript would write other numbers. */
import type { Tool } from "../schema/message.ts";
import { parseAsWritten, writtenText } from "./written-numbers.ts";

type Schema = Pick<Tool, "parameters" | "parameters_source">;

/** `value`: the very object that stood in the body, or what stands for a tool without a schema. */
export function toolSchema(value: unknown): Schema {
  const parameters = (value as Tool["parameters"] | null | undefined) ?? { type: "object", properties: {} };
  const text = writtenText(value);
  return { parameters, ...(text !== undefined && { parameters_source: text }) };
}

/** The schema for JSON.stringify alone, which writes its numbers as the harness did: a template prints them to the model. */
export function schemaAsWritten({ parameters, parameters_source }: Schema): Tool["parameters"] {
  return parameters_source === undefined ? parameters : (parseAsWritten(parameters_source) as Tool["parameters"]);
}
