/**
 * SGLang's server. Chat completions give ids and meta info only without streaming, so a turn arrives in one piece. Sampled
 * ids and logprobs are read as pairs from `meta_info.output_token_logprobs`; every other field about them must agree with
 * the pairs. Wire facts: SGLang 0.5.23, see ARCHITECTURE.md, "What an engine must give".
 */
import { z } from "zod";
import { imagesIn } from "../base/media/stored-picture.ts";
import type { Message, Prompt, Tool } from "../base/schema/message.ts";
import { isMeasured } from "./chat/alignment.ts";
import type { ModelExperts } from "./chat/experts.ts";
import { firstFacts } from "./chat/first-facts.ts";
import { logprobKind } from "./chat/logprob-kind.ts";
import { plainWording, toChatMessages, toChatToolChoice, toChatTools, verbatimWording } from "./chat/messages.ts";
import { servedModels } from "./chat/served-models.ts";
import type {
  Engine,
  EngineFacts,
  EngineKind,
  PrefixReset,
  RankedToken,
  Rendered,
  RenderSource,
  SampleEvent,
  SampleRequest,
  ServedModels,
  TokenizeSource,
} from "./engine.ts";
import { EngineClient } from "./http/engine-client.ts";
import { gauge } from "./http/metrics.ts";
import { InputLogprobs, toRankedTokens } from "./sglang/input-logprobs.ts";
import { Id, replyEvents, SglangReply, toldExperts, toldSupport } from "./sglang/reply.ts";
import { type KnownExperts, RoutingOptions, readRouting, whyRowsAreLost } from "./sglang/routing.ts";
import { sglangSampledNothing } from "./sglang/sampled-nothing.ts";
import { toGenerateSampling, toSglangSampling } from "./sglang/sampling.ts";

/** A server that computes a whole answer may miss the closed connection. The abort request tells it; its failure is ignored. */
const abortRequestMs = 2_000;

export const sglang: EngineKind = {
  name: "sglang",
  title: "SGLang's server: turns come in one piece, for it gives no ids while it streams",
  create: (options) => new SglangEngine(options),
};

class SglangEngine implements Engine {
  readonly name = "sglang";
  readonly takesPrompts = true;
  readonly tellsTokens = true;
  readonly #client: EngineClient;
  #wording = plainWording;
  /** Found by the probe: the model's experts, if the server tells which ones the tokens took; null: it is not asked. */
  #experts: KnownExperts | null = null;

  constructor(options: { baseUrl: string; apiKey: string | null }) {
    this.#client = new EngineClient({ ...options, sampledNothing: sglangSampledNothing });
  }

  get baseUrl(): string {
    return this.#client.baseUrl;
  }

  async probe(signal: AbortSignal): Promise<EngineFacts> {
    this.#experts = null;
    const { weight_version = null, model_path = null } = await this.#modelInfo(signal);
    const { facts, model, experts } = await firstFacts(this, this.#client, signal, model_path);
    const info = await this.#serverInfo(signal);
    facts.version = info?.version ?? null;
    facts.weight_version = weight_version;
    if (model === null) return facts;
    this.#wording = facts;
    const cold = await this.#probeOnce(model, 1, asksForExperts(), signal);
    if (cold.experts !== null) Object.assign(facts, this.#lookAtExperts(cold, cold.experts, experts, info));
    facts.token_ids = cold.prompt && cold.sampled;
    facts.logprobs = cold.logprob !== null;
    if (facts.logprobs) {
      const warm = await this.#probeOnce(model, 2, {}, signal);
      facts.logprob_semantics = logprobKind(cold.best, warm.best);
      facts.grammar_logprobs = await this.#grammarLogprobs(model, signal);
    }
    const echo = await this.#probeOnce(model, 1, { input_ids: [1, 2, 3] }, signal).catch(() => null);
    facts.token_in = echo?.prompt_ids?.join() === "1,2,3";
    if (!facts.token_in)
      facts.token_in_missing = `the chat route at ${this.baseUrl} did not sample on the "input_ids" that it was given: serve the model with SGLang 0.5.17 or newer, without a router in between`;
    const limit = info?.sampling_mask_max_tokens ?? 0;
    const most = Math.floor(limit / headroomForTies);
    if (facts.logprobs && most >= 2 && (await this.#tellsSupport(model, signal))) facts.support = { most, bounded: true };
    facts.missing = this.#missing(cold);
    return facts;
  }

  models(signal: AbortSignal): Promise<ServedModels> {
    return servedModels(this.#client, signal);
  }

  async *sample(request: SampleRequest, signal: AbortSignal): AsyncGenerator<SampleEvent> {
    let isOver = false;
    const experts = imagesIn(request.messages).length > 0 ? null : this.#experts;
    const asks = { ...(experts !== null && asksForExperts(request.routing_start)), ...(request.support && asksForSupport) };
    try {
      const response = request.prompt
        ? await this.#client.open("/generate", { ...toGenerate(request, request.prompt), ...asks }, signal, request.call_id)
        : await this.#client.open("/v1/chat/completions", { ...this.#chatBody(request), ...asks }, signal, request.call_id);
      yield { type: "accepted", status: 200 };
      const text = await response.text().catch((error: unknown) => {
        throw this.#client.brokenOff(error, signal);
      });
      isOver = true;
      yield* replyEvents(this.baseUrl, text, request, experts);
    } finally {
      // A server that computes a whole answer may not notice a closed connection.
      if (!isOver && signal.aborted) void this.#abortRequest(request.call_id);
    }
  }

  async countTokens(request: Pick<SampleRequest, "model" | "messages" | "tools">, signal: AbortSignal): Promise<number> {
    return (await this.tokenize(request.model, request, signal)).length;
  }

  async tokenize(model: string, source: TokenizeSource, signal: AbortSignal): Promise<number[]> {
    const body =
      "text" in source
        ? { model, prompt: source.text, add_special_tokens: false }
        : { ...this.#conversation(model, source, source.verbatim), add_generation_prompt: true };
    return Tokenized.parse(await this.#client.json("POST", "/tokenize", body, signal)).tokens;
  }

  async render(model: string, source: RenderSource, signal: AbortSignal): Promise<Rendered> {
    const { reasoning_effort, chat_template_kwargs } = source.sampling ?? {};
    const body = {
      ...this.#conversation(model, source),
      ...(source.tools.length > 0 ? { tool_choice: toChatToolChoice(source.tool_choice ?? null) } : {}),
      ...(reasoning_effort === undefined ? {} : { reasoning_effort }),
      ...(chat_template_kwargs === undefined ? {} : { chat_template_kwargs }),
      // Said aloud, the messages are printed as they are; left out, an assistant turn at the end would be a prefix.
      add_generation_prompt: source.generation,
    };
    const token_ids = Tokenized.parse(await this.#client.json("POST", "/tokenize", body, signal)).tokens;
    return { token_ids, text: source.ids_only ? "" : await this.detokenize(model, token_ids, signal) };
  }

  #conversation(model: string, source: { messages: Message[]; tools: Tool[] }, verbatim = false): Record<string, unknown> {
    return {
      model,
      messages: toChatMessages(source.messages, verbatim ? verbatimWording : this.#wording, "reasoning_content"),
      ...(source.tools.length > 0 ? { tools: toChatTools(source.tools) } : {}),
    };
  }

  async score(model: string, tokenIds: number[], signal: AbortSignal): Promise<(number | null)[]> {
    return (await this.scoreTop(model, tokenIds, 0, signal)).map(({ logprob }) => logprob);
  }

  async scoreTop(_model: string, tokenIds: number[], top: number, signal: AbortSignal): Promise<RankedToken[]> {
    // One token must be sampled; its logprob is of no interest.
    const body = {
      input_ids: tokenIds,
      sampling_params: { max_new_tokens: 1, temperature: 0 },
      return_logprob: true,
      logprob_start_len: 0,
      ...(top > 0 && { top_logprobs_num: top }),
    };
    const answer = Scored.parse(await this.#client.json("POST", "/generate", body, signal));
    return toRankedTokens(tokenIds, answer.meta_info, top);
  }

  async detokenize(model: string, tokenIds: number[], signal: AbortSignal): Promise<string> {
    const body = { model, tokens: tokenIds, skip_special_tokens: false };
    return Detokenized.parse(await this.#client.json("POST", "/detokenize", body, signal)).text;
  }

  /** The server refuses while it is at requests. */
  async resetPrefixCache(signal: AbortSignal): Promise<PrefixReset> {
    const { status } = await this.#client.command("/flush_cache", signal);
    if (status === 404 || status === 405) return "not_supported";
    return status === 200 ? "reset" : "failed";
  }

  /** Needs `--enable-metrics` at the server. */
  running(signal: AbortSignal): Promise<number | null> {
    return gauge(this.#client, "sglang:num_running_reqs", signal);
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  #chatBody(request: SampleRequest): Record<string, unknown> {
    const { parallel_tool_calls, ...sampling } = request.sampling;
    const hasTools = request.tools.length > 0;
    return {
      model: request.model,
      messages: toChatMessages(request.messages, this.#wording, "reasoning_content"),
      ...(hasTools ? { tools: toChatTools(request.tools), tool_choice: toChatToolChoice(request.tool_choice) } : {}),
      ...(hasTools && parallel_tool_calls !== undefined ? { parallel_tool_calls } : {}),
      ...toSglangSampling(sampling),
      // With ids the template does not run, but the server's parsers still need the messages.
      ...(request.prompt_ids ? { input_ids: request.prompt_ids.toIds() } : {}),
      stream: false,
      rid: request.call_id,
      ...(request.cache_salt ? { cache_salt: request.cache_salt } : {}),
      ...idFields,
      ...(request.token_logprobs && { top_logprobs: request.token_logprobs.top }),
    };
  }

  async #abortRequest(rid: string): Promise<void> {
    try {
      const { response } = await this.#client.send("POST", "/abort_request", { rid }, AbortSignal.timeout(abortRequestMs));
      await response.text();
    } catch {
      // The connection is closed, which says the same.
    }
  }

  async weightVersion(signal: AbortSignal): Promise<string | null> {
    return (await this.#modelInfo(signal)).weight_version ?? null;
  }

  async #modelInfo(signal: AbortSignal): Promise<z.infer<typeof ModelInfo>> {
    let found: z.infer<typeof ModelInfo> = {};
    for (const path of ["/model_info", "/get_model_info"]) {
      const info = ModelInfo.safeParse(await this.#client.json("GET", path, undefined, signal).catch(() => null));
      if (info.data?.weight_version) return info.data;
      found = { ...info.data, ...found };
    }
    return found;
  }

  /** undefined: neither route tells it. */
  async #serverInfo(signal: AbortSignal): Promise<z.infer<typeof ServerInfo> | undefined> {
    for (const path of ["/server_info", "/get_server_info"]) {
      const { data } = ServerInfo.safeParse(await this.#client.json("GET", path, undefined, signal).catch(() => null));
      if (data !== undefined) return data;
    }
    return undefined;
  }

  /** `told`: the experts of the tokens of the probe. */
  #lookAtExperts(
    { tokens }: SglangProbe,
    told: string,
    experts: ModelExperts | null,
    options: z.infer<typeof RoutingOptions> | undefined,
  ): Pick<EngineFacts, "routing" | "routing_missing"> {
    const lost = whyRowsAreLost(options);
    if (lost !== null) return { routing_missing: lost };
    if (experts === null || experts.row === null) return { routing_missing: "no_shape" };
    const known = { count: experts.count, row: experts.row };
    if (readRouting(told, 0, tokens, known) === null) return { routing_missing: "misfit" };
    this.#experts = known;
    return { routing: "all" };
  }

  async #probeOnce(model: string, temperature: number, extra: Record<string, unknown>, signal: AbortSignal): Promise<SglangProbe> {
    const body = { ...probeBody(model, temperature), ...extra };
    const answer = await this.#client.json("POST", "/v1/chat/completions", body, signal);
    const reply = SglangReply.safeParse(answer).data;
    const choice = reply?.choices[0];
    // The list has two entries, and one of them is the best token's.
    const best = choice?.meta_info?.output_top_logprobs?.[0] ?? [];
    const sampled = choice?.meta_info?.output_token_logprobs?.[0];
    const known = best.flatMap(([logprob]) => (isMeasured(logprob) ? [logprob] : []));
    return {
      prompt: Boolean(choice?.prompt_token_ids?.length),
      prompt_ids: choice?.prompt_token_ids ?? null,
      sampled: Boolean(sampled ?? choice?.response_token_ids?.length),
      meta: choice?.meta_info != null,
      logprob: isMeasured(sampled?.[0]) ? sampled[0] : null,
      best: known.length > 0 ? Math.max(...known) : null,
      experts: reply === undefined ? null : toldExperts(reply),
      tokens: (choice?.prompt_token_ids?.length ?? 0) + (choice?.meta_info?.output_token_logprobs?.length ?? 0),
    };
  }

  /** Some backends and some ways of speculative decoding refuse such a request. */
  async #tellsSupport(model: string, signal: AbortSignal): Promise<boolean> {
    const body = { ...probeBody(model, 1), ...asksForSupport, top_k: 2 };
    const answer = await this.#client.json("POST", "/v1/chat/completions", body, signal).catch(() => null);
    const reply = SglangReply.safeParse(answer).data;
    return reply !== undefined && toldSupport(reply) !== null;
  }

  async #grammarLogprobs(model: string, signal: AbortSignal): Promise<"masked" | "unmasked" | null> {
    const body = { ...probeBody(model, 1), regex: "a" };
    const answer = await this.#client.json("POST", "/v1/chat/completions", body, signal).catch(() => null);
    const logprob = SglangReply.safeParse(answer).data?.choices[0]?.meta_info?.output_token_logprobs?.[0]?.[0];
    return isMeasured(logprob) ? (logprob === 0 ? "masked" : "unmasked") : null;
  }

  #missing(probed: SglangProbe): string | null {
    if (probed.prompt && probed.sampled && probed.logprob !== null) return null;
    if (probed.prompt !== probed.sampled || (probed.meta && !probed.sampled))
      return `what answers at ${this.baseUrl} returned ${probed.prompt ? "prompt" : "sampled"} token ids only: SGLang's router strips the others. Point --engine at the SGLang worker itself`;
    if (!probed.prompt)
      return `the engine at ${this.baseUrl} returned no token ids for "return_prompt_token_ids" and "return_meta_info": serve the model with SGLang 0.5.17 or newer; where it is one, its router strips them: point --engine at the worker itself`;
    return `the engine at ${this.baseUrl} returned token ids but no meta_info.output_token_logprobs: serve the model with SGLang 0.5.17 or newer, without a router that strips meta_info`;
  }
}

/** `logprobs` fills the meta info; without it there are ids and no logprobs. */
const idFields = { return_prompt_token_ids: true, return_token_ids: true, return_meta_info: true, logprobs: true };

/** `start`: the first token whose experts are asked for. */
function asksForExperts(start = 0): Record<string, unknown> {
  return { return_routed_experts: true, ...(start > 0 && { routed_experts_start_len: start }) };
}

/** The chat route refuses it without `return_meta_info`, which is in `idFields`. */
const asksForSupport = { return_sampling_mask: true };

/** A server aborts a call that keeps more tokens than its limit, and tokens that are tied with the last one are kept too. */
const headroomForTies = 2;

function probeBody(model: string, temperature: number): Record<string, unknown> {
  return { model, messages: [{ role: "user", content: "ping" }], max_tokens: 1, temperature, top_logprobs: 2, stream: false, ...idFields };
}

/** A prompt without a template around it. Its parsers do not run here, and nothing of it is a tool call. */
function toGenerate(request: SampleRequest, prompt: Prompt): Record<string, unknown> {
  return {
    // An id that the vocabulary does not have ends the whole server, unless a field is refused for it before.
    ...("text" in prompt ? { text: prompt.text } : { input_ids: prompt.token_ids, token_ids_logprob: [largest(prompt.token_ids)] }),
    sampling_params: toGenerateSampling(request.sampling),
    return_logprob: true,
    ...(request.token_logprobs && { return_text_in_logprobs: true, top_logprobs_num: request.token_logprobs.top }),
    return_prompt_token_ids: true,
    stream: false,
    rid: request.call_id,
    ...(request.cache_salt ? { cache_salt: request.cache_salt } : {}),
  };
}

function largest(ids: readonly number[]): number {
  return ids.reduce((most, id) => Math.max(most, id), 0);
}

type SglangProbe = {
  prompt: boolean;
  prompt_ids: number[] | null;
  sampled: boolean;
  meta: boolean;
  /** The sampled token's. */
  logprob: number | null;
  /** The likeliest token's; null where the server lists none. */
  best: number | null;
  /** As the server tells them; null: it does not. */
  experts: string | null;
  /** How many prompt and sample have together. */
  tokens: number;
};

const ServerInfo = RoutingOptions.extend({
  version: z.string().nullish(),
  sampling_mask_max_tokens: z.number().int().nullish().catch(null),
});
const ModelInfo = z.looseObject({ weight_version: z.string().nullish(), model_path: z.string().nullish().catch(null) });
const Tokenized = z.looseObject({ tokens: z.array(Id) });
const Scored = z.looseObject({ meta_info: InputLogprobs });
const Detokenized = z.looseObject({ text: z.string() });
