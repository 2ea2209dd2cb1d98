/** A completions request as the neutral one. */
import { z } from "zod";
import type { NeutralRequest, Prompt } from "../../../base/schema/message.ts";
import { checked, invalid, isObject, rest } from "../edge.ts";
import { knownFields, omitted, unknownFields } from "../left-out/omitted.ts";
import { Alternatives } from "../openai/logprobs.ts";
import { parseSampling, samplingFields, samplingKeys } from "../openai/sampling.ts";

const Body = z.looseObject({
  ...samplingFields,
  model: z.string(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  logprobs: Alternatives,
});

/** No tokenizer has more. An engine that echoed a larger id would be taken for one that is broken, by a client's doing. */
const highestId = 2 ** 31 - 1;

const TokenIds = z.array(z.number().int().nonnegative().max(highestId));

export function parseCompletion(value: unknown): NeutralRequest {
  const body = checked(Body, value);
  refuseUnsupported(body);
  return {
    model: body.model,
    messages: [],
    prompt: parsePrompt(body.prompt, "prompt"),
    tools: [],
    tool_choice: null,
    sampling: parseSampling(body),
    stream: body.stream ?? false,
    ...(body.logprobs != null && { token_logprobs: { top: body.logprobs } }),
    native: rest(body, mapped),
    ...omitted({ fields: unknownFields(body, known) }),
  };
}

const mapped = ["model", "prompt", "stream", "choice", ...samplingKeys];
const known = knownFields([...mapped, "n", "logprobs", "best_of", "echo", "use_beam_search", "suffix", "prompt_embeds"]);

/** Text, token ids, or a list of just one of either: of several each is a request of its own (`openai/choices.ts`). */
function parsePrompt(value: unknown, at: string): Prompt {
  if (typeof value === "string" && value !== "") return { text: value };
  if (!Array.isArray(value) || value.length === 0)
    throw invalid(at, `expected a text or a list of token ids, and not empty, received ${value === null ? "null" : typeof value}`);
  if (typeof value[0] === "number") return { token_ids: checked(TokenIds, value, at) };
  if (value.length > 1) throw invalid(at, "expected a text or a list of token ids, received a list of other lists");
  return parsePrompt(value[0], `${at}[0]`);
}

/** What would change the meaning of the answer, with what is understood. */
function refuseUnsupported(body: Record<string, unknown>): void {
  if (body.best_of != null && body.best_of !== 1)
    throw invalid("best_of", `only 1 is supported, not ${JSON.stringify(body.best_of)}; ask for all of them with \`n\``);
  for (const field of ["echo", "use_beam_search"]) if (body[field] === true) throw invalid(field, "is not supported; leave it out");
  if (body.suffix != null && body.suffix !== "") throw invalid("suffix", "inserting before a suffix is not supported; leave it out");
  if (isObject(body.prompt_embeds) || typeof body.prompt_embeds === "string")
    throw invalid("prompt_embeds", "is not supported; send the prompt itself");
}
