/** A Responses request as the neutral one. */
import { z } from "zod";
import type { Message, NeutralRequest, Sampling } from "../../../base/schema/message.ts";
import type { SessionRecord } from "../dialect.ts";
import { checked, invalid, isObject, present, rest } from "../edge.ts";
import { engineFields, engineKeys, parseEngineSampling } from "../engine-sampling.ts";
import { knownFields, omitted, unknownFields } from "../left-out/omitted.ts";
import { Alternatives } from "../openai/logprobs.ts";
import { asCompaction, compactionPrompt, isCompaction, unfoldCompactions } from "./compaction.ts";
import { earlierConversation } from "./earlier.ts";
import { parseItems } from "./items.ts";
import { followReferences } from "./references.ts";
import { ToolList } from "./tools.ts";

const Body = z.looseObject({
  ...engineFields,
  model: z.string(),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  max_output_tokens: z.number().int().positive().nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  reasoning: z.looseObject({ effort: z.string().nullish() }).nullish(),
  include: z.array(z.string()).nullish(),
  top_logprobs: Alternatives,
  text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
});

/** Fields that say a part of the conversation elsewhere: without it the conversation would silently be another one. */
const elsewhere: Record<string, string> = {
  prompt: "stored prompts are not kept here; send the text itself",
  previous_input_messages: "is not supported; send the conversation as items of the input",
};

/** Names of `native` that say what was found out here: a field of the body under one of them means nothing. */
const ours = ["compaction", "conversation_id", "has_instructions", "builtin_tools", "namespaced_tools"];

/** What the answer repeats (temperature, text, metadata, …) stays under its own name. */
const mapped = ["model", "input", "instructions", "tools", "stream", ...engineKeys, ...ours];

/** Read or refused below, or by what this file calls. */
const known = knownFields([
  ...mapped,
  ...Object.keys(Body.shape),
  ...Object.keys(elsewhere),
  ...["tool_choice", "background", "previous_response_id", "conversation"],
]);
const knownText = new Set(["format"]);
/** How much of its thoughts an answer shows is no matter of the model's. */
const knownReasoning = new Set(["effort", "summary", "generate_summary"]);

export function parseResponses(value: unknown, record?: SessionRecord): NeutralRequest {
  const body = checked(Body, value);
  refuseUnsupported(body);
  const earlier = earlierConversation(body, record);
  const { values, compacted_in } = unfoldCompactions(followReferences(inputItems(body.input, earlier !== null), record), record);
  const tools = new ToolList();
  tools.add(body.tools, "tools");
  for (const [index, item] of values.entries())
    if (isObject(item) && item.type === "additional_tools") tools.add(item.tools, `input[${index}].tools`);
  const messages = parseItems(values, tools, record);
  const compacts = isCompaction(body);
  const choice = compacts ? { tools: [], tool_choice: null } : tools.choose(body.tool_choice);
  const head = instructions(body.instructions);
  return {
    model: body.model,
    messages: [...head, ...(earlier?.messages ?? []), ...messages, ...(compacts ? [compactionPrompt] : [])],
    tools: choice.tools,
    tool_choice: choice.tool_choice,
    sampling: parseSampling(body),
    stream: !compacts && (body.stream ?? false),
    ...(!compacts && tokenLogprobs(body)),
    ...(compacted_in !== null && { compacted_in }),
    ...(earlier?.continues && { continues: { ...earlier.continues, head: head.length } }),
    native: {
      ...rest(body, mapped),
      ...(compacts && asCompaction),
      ...(earlier?.conversation_id && { conversation_id: earlier.conversation_id }),
      ...(head.length > 0 && { has_instructions: true }),
      ...(tools.builtin.size > 0 && { builtin_tools: Object.fromEntries(tools.builtin) }),
      ...(tools.namespaced.size > 0 && { namespaced_tools: Object.fromEntries(tools.namespaced) }),
    },
    ...omitted({ tools: tools.hosted, fields: leftOut(body) }),
  };
}

function leftOut(body: z.output<typeof Body>): string[] {
  return [
    ...unknownFields(body, known),
    ...unknownFields(body.text, knownText, "text"),
    ...unknownFields(body.reasoning, knownReasoning, "reasoning"),
  ];
}

function refuseUnsupported(body: Record<string, unknown>): void {
  for (const [field, why] of Object.entries(elsewhere)) if (body[field] !== null && body[field] !== undefined) throw invalid(field, why);
  if (body.background === true) throw invalid("background", "is not supported; leave it out");
}

function inputItems(input: unknown, mayBeMissing: boolean): unknown[] {
  if (mayBeMissing && (input === undefined || input === null)) return [];
  if (typeof input === "string") return [{ role: "user", content: input }];
  if (!Array.isArray(input))
    throw invalid("input", `expected a string or a list of items, received ${input === null ? "null" : typeof input}`);
  if (input.length === 0 && !mayBeMissing) throw invalid("input", "is empty");
  return input;
}

function instructions(text: string | null | undefined): Message[] {
  return text ? [{ role: "system", parts: [{ type: "text", text }] }] : [];
}

function parseSampling(body: z.output<typeof Body>): Sampling {
  return {
    ...parseEngineSampling(body),
    ...present({
      temperature: body.temperature,
      top_p: body.top_p,
      max_tokens: body.max_output_tokens,
      parallel_tool_calls: body.parallel_tool_calls,
      reasoning_effort: body.reasoning?.effort,
      response_format: responseFormat(body.text?.format),
    }),
  };
}

const withLogprobs = "message.output_text.logprobs";

function tokenLogprobs({ include, top_logprobs: top }: z.output<typeof Body>): Pick<NeutralRequest, "token_logprobs"> {
  if (include?.includes(withLogprobs)) return { token_logprobs: { top: top ?? 0 } };
  if (top) throw invalid("top_logprobs", `is sent without "${withLogprobs}" in \`include\`; send both`);
  return {};
}

/** Chat's shape is the one that engines take: there the schema is one level deeper. */
function responseFormat(format: Record<string, unknown> | null | undefined): unknown {
  if (!format || format.type === "text") return undefined;
  if (format.type !== "json_schema") return format;
  const { type, ...schema } = format;
  return { type, json_schema: schema };
}
