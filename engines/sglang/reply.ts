/** SGLang's whole answers, of its chat route and of `/generate`: what they say, and whether it belongs together. */
import { z } from "zod";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import type { FinishReason } from "../../base/schema/message.ts";
import { readJson } from "../../base/schema/read-json.ts";
import type { SampledToken } from "../../base/schema/sampled-token.ts";
import type { WeightSpan } from "../../base/schema/session-log.ts";
import { IdText } from "../../base/tokens/id-text.ts";
import { isMeasured } from "../chat/alignment.ts";
import { chatFinish } from "../chat/finish.ts";
import { promptComplaint } from "../chat/prompt-echo.ts";
import { messageEvents, ReplyMessage } from "../chat/reply.ts";
import { type SaidToken, sampledToken, withOwnBytes } from "../chat/sampled-tokens.ts";
import { checkedSupport } from "../chat/sampling-support.ts";
import type { SampleEvent, SampleRequest, TokenSupport } from "../engine.ts";
import { type KnownExperts, readRouting } from "./routing.ts";

/** `experts`: those of the model, if the request asked which ones the tokens took. Throws `engine_error` for what is not of SGLang's shape. */
export function replyEvents(
  baseUrl: string,
  text: string,
  request: SampleRequest,
  experts: KnownExperts | null = null,
): Generator<SampleEvent> {
  const notOurs = (why: string) =>
    new AlidadeError(
      "engine_error",
      `the engine at ${baseUrl} sent an answer that is not of SGLang's shape: ${why}: ${text.slice(0, 200)}`,
    );
  let value: unknown;
  try {
    value = readJson(text);
  } catch (error) {
    throw notOurs(messageOf(error));
  }
  const parsed = request.prompt ? GenerateReply.transform(toChatReply).safeParse(value) : SglangReply.safeParse(value);
  if (parsed.success) return toEvents(parsed.data, request, experts);
  const issue = parsed.error.issues[0];
  throw notOurs(`${issue?.path.join(".")}: ${issue?.message}`);
}

function toChatReply({ text, output_ids, prompt_token_ids, meta_info }: z.infer<typeof GenerateReply>): SglangReply {
  const choice = {
    message: { content: text },
    finish_reason: meta_info.finish_reason?.type ?? null,
    prompt_token_ids: prompt_token_ids ?? null,
    response_token_ids: output_ids ?? null,
    meta_info,
  };
  return { choices: [choice], usage: { prompt_tokens: meta_info.prompt_tokens, completion_tokens: meta_info.completion_tokens } };
}

function* toEvents(reply: SglangReply, request: SampleRequest, experts: KnownExperts | null): Generator<SampleEvent> {
  const [choice] = reply.choices;
  const meta = choice.meta_info ?? null;
  if (choice.prompt_token_ids?.length) yield { type: "prompt", token_ids: choice.prompt_token_ids };
  yield* messageEvents(choice.message, choice.message.reasoning_content ?? choice.message.reasoning);
  const promptIds =
    request.prompt_ids ?? (request.prompt && "token_ids" in request.prompt ? IdText.of(request.prompt.token_ids) : undefined);
  const { ids, logprobs, misaligned } = sampledOf(choice, reply.usage?.completion_tokens ?? null, promptIds);
  const tokens = request.token_logprobs && tokensOf(meta, request.token_logprobs.top);
  const kept = request.support ? toldSupport(reply) : null;
  const said = kept === null ? { logprobs, ...(request.support && isTold(meta) && { support: ids.map(() => "misfit" as const) }) } : kept;
  if (ids.length > 0) yield { type: "tokens", token_ids: ids, ...said, ...(tokens && { tokens }) };
  const routed = toldExperts(reply);
  if (routed !== null && experts !== null) {
    const tokens = (choice.prompt_token_ids?.length ?? 0) + ids.length;
    yield { type: "routing", routing: readRouting(routed, request.routing_start ?? 0, tokens, experts) };
  }
  const weights = weightsOf(reply, ids.length);
  yield {
    type: "end",
    finish_reason: finishOf(choice),
    stop: stopOf(choice),
    usage: {
      prompt_tokens: reply.usage?.prompt_tokens ?? meta?.prompt_tokens ?? null,
      cached_tokens: meta?.cached_tokens ?? reply.usage?.prompt_tokens_details?.cached_tokens ?? null,
      sampled_tokens: reply.usage?.completion_tokens ?? meta?.completion_tokens ?? null,
      reasoning_tokens: reply.usage?.reasoning_tokens ?? null,
    },
    engine_model: reply.model ?? null,
    ...(weights && { weights }),
    ...(misaligned && { misaligned }),
  };
}

/** The sampled tokens' logprobs over the kept tokens, and these. null: the server does not tell them, or not for these tokens. */
export function toldSupport(reply: SglangReply): { logprobs: number[]; support: TokenSupport[] } | null {
  const meta = reply.choices[0].meta_info;
  const ids = (meta?.output_token_logprobs ?? []).map(([, id]) => id);
  const told = ToldSupport.safeParse(meta).data;
  if (told === undefined || ids.length === 0) return null;
  const { output_token_sampling_mask: sets, output_token_sampling_logprobs: logprobs } = told;
  if (sets.length !== ids.length || logprobs.length !== ids.length || !logprobs.every(isMeasured)) return null;
  const support = ids.map((id, at) => checkedSupport(id, sets[at] ?? []));
  return support.includes("misfit") ? null : { logprobs, support };
}

function isTold(meta: Choice["meta_info"]): boolean {
  return Array.isArray(meta?.output_token_sampling_mask);
}

/** 0.5.23 tells them in the meta info if that is asked for, else beside the choices. */
export function toldExperts({ choices: [choice], sglext }: SglangReply): string | null {
  return choice.meta_info?.routed_experts ?? sglext?.routed_experts ?? null;
}

/** Ids and logprobs from the pairs of the meta info, held against every other place where the reply says them. */
function sampledOf(
  choice: Choice,
  counted: number | null,
  promptIds: IdText | undefined,
): { ids: number[]; logprobs: (number | null)[]; misaligned: string | null } {
  const pairs = choice.meta_info?.output_token_logprobs ?? null;
  const reported = choice.response_token_ids ?? choice.token_ids ?? null;
  const ids = pairs?.map(([, id]) => id) ?? reported ?? [];
  const logprobs = pairs ? pairs.map(([logprob]) => (isMeasured(logprob) ? logprob : null)) : ids.map(() => null);
  const prompt = choice.prompt_token_ids ?? null;
  const promptTokens = choice.meta_info?.prompt_tokens ?? null;
  const complaints = [
    pairs && reported && pairs.length !== reported.length && `${pairs.length} logprobs and ${reported.length} response_token_ids`,
    pairs &&
      reported &&
      pairs.length === reported.length &&
      reported.some((id, at) => id !== ids[at]) &&
      "logprobs of other ids than response_token_ids",
    counted !== null && ids.length > 0 && counted !== ids.length && `${counted} completion tokens and ${ids.length} ids`,
    prompt && promptTokens !== null && prompt.length !== promptTokens && `${promptTokens} prompt tokens and ${prompt.length} prompt ids`,
    promptIds && promptComplaint(promptIds, prompt && { token_ids: prompt }),
  ].filter((one) => typeof one === "string");
  return { ids, logprobs, misaligned: complaints.length === 0 ? null : `the engine gave ${complaints.join(", and ")}` };
}

/** Null where a token has no text. */
function tokensOf(meta: Choice["meta_info"], top: number): SampledToken[] | null {
  const said = ([logprob, , text]: z.infer<typeof Pair>): SaidToken => ({ text, logprob });
  const pairs = meta?.output_token_logprobs ?? [];
  if (!pairs.every(([, , text]) => typeof text === "string")) return null;
  return withOwnBytes(pairs.map((pair, at) => sampledToken(pair[1], said(pair), (meta?.output_top_logprobs?.[at] ?? []).map(said), top)));
}

function finishOf(choice: Choice): FinishReason {
  const type = choice.meta_info?.finish_reason?.type;
  if (type === "abort") return "abort";
  return chatFinish(choice.finish_reason);
}

/** A stop string, or the id of a stop token. SGLang names its end-of-turn token too, and nothing says which one that is. */
function stopOf(choice: Choice): string | number | null {
  return choice.meta_info?.finish_reason?.matched ?? choice.matched_stop ?? null;
}

function weightsOf(reply: SglangReply, count: number): WeightSpan[] | null {
  const reported = reply.metadata ?? reply.choices[0]?.meta_info ?? null;
  const spans = reported?.weight_versions?.flatMap(({ version, start, end }) => ({ version, start, end: end ?? null }));
  if (spans?.length) return spans;
  // One name alone is the one at the finish: the turn may have begun under another.
  return reported?.weight_version ? [{ version: reported.weight_version, start: 0, end: count || null }] : null;
}

export const Id = z.number().int().nonnegative();
const Pair = z.tuple([z.number().nullable(), Id]).rest(z.unknown());
const Weights = {
  weight_version: z.string().nullish().catch(null),
  weight_versions: z
    .array(z.looseObject({ version: z.string(), start: Id, end: Id.nullish() }))
    .nullish()
    .catch(null),
};
const Meta = z.looseObject({
  finish_reason: z.looseObject({ type: z.string(), matched: z.union([z.string(), z.number()]).nullish() }).nullish(),
  prompt_tokens: z.number().int().nullish(),
  completion_tokens: z.number().int().nullish(),
  cached_tokens: z.number().int().nullish(),
  output_token_logprobs: z.array(Pair).nullish(),
  output_top_logprobs: z.array(z.array(Pair).nullable()).nullish(),
  routed_experts: z.string().nullish().catch(null),
  ...Weights,
});
const ToldSupport = z.looseObject({
  output_token_sampling_mask: z.array(z.array(z.unknown())),
  output_token_sampling_logprobs: z.array(z.number()),
});
const Choice = z.looseObject({
  message: ReplyMessage.extend({ reasoning: z.string().nullish() }),
  finish_reason: z.string().nullish(),
  matched_stop: z.union([z.string(), z.number()]).nullish(),
  prompt_token_ids: z.array(Id).nullish(),
  response_token_ids: z.array(Id).nullish(),
  token_ids: z.array(Id).nullish(),
  meta_info: Meta.nullish(),
});
type Choice = z.infer<typeof Choice>;
/** A chat's answer. */
export const SglangReply = z.looseObject({
  model: z.string().nullish(),
  choices: z.tuple([Choice], Choice),
  usage: z
    .looseObject({
      prompt_tokens: z.number().int().nullish(),
      completion_tokens: z.number().int().nullish(),
      reasoning_tokens: z.number().int().nullish(),
      prompt_tokens_details: z.looseObject({ cached_tokens: z.number().int().nullish() }).nullish(),
    })
    .nullish(),
  metadata: z.looseObject(Weights).nullish(),
  sglext: z
    .looseObject({ routed_experts: z.string().nullish().catch(null) })
    .nullish()
    .catch(null),
});
export type SglangReply = z.infer<typeof SglangReply>;

/** What `/generate` answers: a text that no parser has seen. */
const GenerateReply = z.looseObject({
  text: z.string(),
  output_ids: z.array(Id).nullish(),
  prompt_token_ids: z.array(Id).nullish(),
  meta_info: Meta,
});
