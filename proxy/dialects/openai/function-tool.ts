/** A function as OpenAI's APIs declare it: nested under `function` in chat, flat in Responses. */
import { z } from "zod";
import type { Tool } from "../../../base/schema/message.ts";
import { toolSchema } from "../../../base/wire/tool-schema.ts";
import { checked } from "../edge.ts";

const FunctionTool = z.looseObject({
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
  strict: z.boolean().nullish(),
});
export function functionTool(value: unknown, at: string): Tool {
  const tool = checked(FunctionTool, value, at);
  return {
    name: tool.name,
    ...(tool.description != null && { description: tool.description }),
    ...toolSchema((value as typeof tool).parameters),
    kind: "function",
    ...(tool.strict != null && { strict: tool.strict }),
  };
}
