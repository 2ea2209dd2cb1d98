/**
 * SGLang's server. Chat completions give ids and the meta info only when they are not streamed, so a turn comes in one
 * piece. Sampled ids and logprobs are read from `meta_info.output_token_logprobs`, whose pairs cannot be out of step,
 * and everything else that the reply says about them must agree.
 * Wire facts: SGLang 0.5.23, see ARCHITECTURE.md, "What an engine must give".
 */
import { z } from "zod";
import { AlidadeError, messageOf } from "../errors.ts";
import type { FinishReason, Message, Sampling, Tool } from "../schema/message.ts";
import { isMeasured } from "./alignment.ts";
import { toChatMessages, toChatToolChoice, toChatTools } from "./chat-messages.ts";
import type {
  Engine,
  EngineFacts,
  EngineKind,
  Rendered,
  RenderSource,
  SampleEvent,
  SampleRequest,
  TokenizeSource,
  WeightSpan,
} from "./engine.ts";
import { EngineClient } from "./engine-client.ts";
import { choicePattern, readGrammar } from "./grammar.ts";
import { logprobKind } from "./logprob-kind.ts";
import { gauge } from "./metrics.ts";
import { promptComplaint } from "./prompt-echo.ts";
import { fingerprints, roleMapping, rolePlaces } from "./template-facts.ts";

/** Telling the server that nobody wants a generation any more is a courtesy beside the closed connection. */
const abortRequestMs = 2_000;

export const sglang: EngineKind = {
  name: "sglang",
  title: "SGLang's server: turns come in one piece, for it gives no ids while it streams",
  create: (options) => new SglangEngine(options),
};

class SglangEngine implements Engine {
  readonly name = "sglang";
  readonly #client: EngineClient;
  #roles: Record<string, string> = {};

  constructor(options: { baseUrl: string; apiKey: string | null }) {
    this.#client = new EngineClient(options);
  }

  get baseUrl(): string {
    return this.#client.baseUrl;
  }

  async probe(signal: AbortSignal): Promise<EngineFacts> {
    const models = ModelList.parse(await this.#client.json("GET", "/v1/models", undefined, signal)).data;
    const model = models[0];
    const info = ServerInfo.safeParse(await this.#client.json("GET", "/get_server_info", undefined, signal).catch(() => null)).data;
    const facts: EngineFacts = {
      engine: this.name,
      base_url: this.baseUrl,
      version: info?.version ?? null,
      models: models.map((one) => one.id),
      max_model_len: model?.max_model_len ?? null,
      token_ids: false,
      logprobs: false,
      logprob_semantics: null,
      token_in: false,
      role_mapping: {},
      missing: null,
      weight_version: await this.weightVersion(signal),
    };
    if (!model) return { ...facts, missing: `the engine at ${this.baseUrl} serves no model: GET /v1/models answered an empty list` };
    const tokenize = (source: TokenizeSource) => this.tokenize(model.id, source, signal);
    this.#roles = facts.role_mapping = roleMapping(await rolePlaces(tokenize));
    facts.fingerprints = await fingerprints(tokenize);
    const cold = await this.#probeOnce(model.id, 1, {}, signal);
    facts.token_ids = cold.prompt && cold.sampled;
    facts.logprobs = cold.best !== null;
    if (facts.logprobs) {
      const warm = await this.#probeOnce(model.id, 2, {}, signal);
      facts.logprob_semantics = logprobKind(cold.best, warm.best);
      facts.grammar_logprobs = await this.#grammarLogprobs(model.id, signal);
    }
    const echo = await this.#probeOnce(model.id, 1, { input_ids: [1, 2, 3] }, signal).catch(() => null);
    facts.token_in = echo?.prompt_ids?.join() === "1,2,3";
    if (!facts.token_in)
      facts.token_in_missing = `the chat route at ${this.baseUrl} did not sample on the "input_ids" that it was given: serve the model with SGLang 0.5.17 or newer, without a router in between`;
    facts.missing = this.#missing(cold);
    return facts;
  }

  async *sample(request: SampleRequest, signal: AbortSignal): AsyncGenerator<SampleEvent> {
    const body = this.#chatBody(request);
    let isOver = false;
    try {
      const response = await this.#client.open("/v1/chat/completions", body, signal, request.call_id);
      yield { type: "accepted", status: 200 };
      const text = await response.text().catch((error: unknown) => {
        throw this.#client.brokenOff(error, signal);
      });
      isOver = true;
      yield* this.#events(this.#parse(text), request);
    } finally {
      // A server that waits for a whole answer may not look whether anybody is still there.
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
    return { token_ids, text: await this.detokenize(model, token_ids, signal) };
  }

  #conversation(model: string, source: { messages: Message[]; tools: Tool[] }, verbatim = false): Record<string, unknown> {
    return {
      model,
      messages: toChatMessages(source.messages, verbatim ? {} : this.#roles, "reasoning_content"),
      ...(source.tools.length > 0 ? { tools: toChatTools(source.tools) } : {}),
    };
  }

  async score(_model: string, tokenIds: number[], signal: AbortSignal): Promise<(number | null)[]> {
    // One token must be sampled; its logprob is of no interest.
    const body = {
      input_ids: tokenIds,
      sampling_params: { max_new_tokens: 1, temperature: 0 },
      return_logprob: true,
      logprob_start_len: 0,
    };
    const answer = Scored.parse(await this.#client.json("POST", "/generate", body, signal));
    const pairs = answer.meta_info.input_token_logprobs;
    return tokenIds.map((id, at) => (pairs[at]?.[1] === id ? (pairs[at]?.[0] ?? null) : null));
  }

  async detokenize(model: string, tokenIds: number[], signal: AbortSignal): Promise<string> {
    const body = { model, tokens: tokenIds, skip_special_tokens: false };
    return Detokenized.parse(await this.#client.json("POST", "/detokenize", body, signal)).text;
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
      messages: toChatMessages(request.messages, this.#roles, "reasoning_content"),
      ...(hasTools ? { tools: toChatTools(request.tools), tool_choice: toChatToolChoice(request.tool_choice) } : {}),
      ...(hasTools && parallel_tool_calls !== undefined ? { parallel_tool_calls } : {}),
      ...toSglangSampling(sampling),
      // With ids the template is not asked; the messages still tell the server's parsers what to do.
      ...(request.prompt_ids ? { input_ids: request.prompt_ids } : {}),
      stream: false,
      rid: request.call_id,
      ...(request.cache_salt ? { cache_salt: request.cache_salt } : {}),
      ...idFields,
    };
  }

  #parse(text: string): ChatReply {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (error) {
      throw this.#notOurs(text, messageOf(error));
    }
    const parsed = ChatReply.safeParse(value);
    if (parsed.success) return parsed.data;
    const issue = parsed.error.issues[0];
    throw this.#notOurs(text, `${issue?.path.join(".")}: ${issue?.message}`);
  }

  #notOurs(text: string, why: string): AlidadeError {
    return new AlidadeError(
      "engine_error",
      `the engine at ${this.baseUrl} sent an answer that is not of SGLang's shape: ${why}: ${text.slice(0, 200)}`,
    );
  }

  *#events(reply: ChatReply, request: SampleRequest): Generator<SampleEvent> {
    const choice = reply.choices[0];
    if (!choice) throw new AlidadeError("engine_error", `the engine at ${this.baseUrl} answered without a choice`);
    const meta = choice.meta_info ?? null;
    if (choice.prompt_token_ids?.length) yield { type: "prompt", token_ids: choice.prompt_token_ids };
    const { message } = choice;
    const reasoning = message.reasoning_content ?? message.reasoning;
    if (reasoning) yield { type: "reasoning-delta", text: reasoning };
    if (message.content) yield { type: "text-delta", text: message.content };
    for (const call of message.tool_calls ?? [])
      yield { type: "tool-call", id: call.id ?? "", name: call.function.name ?? "", arguments: call.function.arguments ?? "" };
    const { ids, logprobs, misaligned } = sampledOf(choice, reply.usage?.completion_tokens ?? null, request.prompt_ids);
    if (ids.length > 0) yield { type: "tokens", token_ids: ids, logprobs };
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

  async #abortRequest(rid: string): Promise<void> {
    try {
      const { body } = await this.#client.send("POST", "/abort_request", { rid }, AbortSignal.timeout(abortRequestMs));
      await body.dump();
    } catch {
      // The connection is closed, which says the same.
    }
  }

  async weightVersion(signal: AbortSignal): Promise<string | null> {
    for (const path of ["/model_info", "/get_model_info"]) {
      const info = ModelInfo.safeParse(await this.#client.json("GET", path, undefined, signal).catch(() => null));
      if (info.data?.weight_version) return info.data.weight_version;
    }
    return null;
  }

  async #probeOnce(model: string, temperature: number, extra: Record<string, unknown>, signal: AbortSignal): Promise<Probed> {
    const body = { ...probeBody(model, temperature), ...extra };
    const answer = await this.#client.json("POST", "/v1/chat/completions", body, signal);
    const choice = ChatReply.safeParse(answer).data?.choices[0];
    // Of two entries one is the best token's, whatever was sampled.
    const best = choice?.meta_info?.output_top_logprobs?.[0] ?? [];
    const sampled = choice?.meta_info?.output_token_logprobs?.[0];
    const known = [...best, ...(sampled ? [sampled] : [])].flatMap(([logprob]) => (isMeasured(logprob) ? [logprob] : []));
    return {
      prompt: Boolean(choice?.prompt_token_ids?.length),
      prompt_ids: choice?.prompt_token_ids ?? null,
      sampled: Boolean(sampled ?? choice?.response_token_ids?.length),
      meta: choice?.meta_info != null,
      best: sampled ? Math.max(...known) : null,
    };
  }

  async #grammarLogprobs(model: string, signal: AbortSignal): Promise<"masked" | "unmasked" | null> {
    const body = { ...probeBody(model, 1), regex: "a" };
    const answer = await this.#client.json("POST", "/v1/chat/completions", body, signal).catch(() => null);
    const logprob = ChatReply.safeParse(answer).data?.choices[0]?.meta_info?.output_token_logprobs?.[0]?.[0];
    return isMeasured(logprob) ? (logprob === 0 ? "masked" : "unmasked") : null;
  }

  #missing(probed: Probed): string | null {
    if (probed.prompt && probed.sampled && probed.best !== null) return null;
    if (probed.prompt !== probed.sampled || (probed.meta && !probed.sampled))
      return `what answers at ${this.baseUrl} returned ${probed.prompt ? "prompt" : "sampled"} token ids only: SGLang's router strips the others. Point --engine at the SGLang worker itself`;
    if (!probed.prompt)
      return `the engine at ${this.baseUrl} returned no token ids for "return_prompt_token_ids" and "return_meta_info": serve the model with SGLang 0.5.17 or newer; where it is one, its router strips them: point --engine at the worker itself`;
    return `the engine at ${this.baseUrl} returned token ids but no meta_info.output_token_logprobs: serve the model with SGLang 0.5.17 or newer, without a router that strips meta_info`;
  }
}

/** `logprobs` fills the meta info; without it there are ids and no logprobs. */
const idFields = { return_prompt_token_ids: true, return_token_ids: true, return_meta_info: true, logprobs: true };

function probeBody(model: string, temperature: number): Record<string, unknown> {
  return { model, messages: [{ role: "user", content: "ping" }], max_tokens: 1, temperature, top_logprobs: 2, stream: false, ...idFields };
}

type Probed = { prompt: boolean; prompt_ids: number[] | null; sampled: boolean; meta: boolean; best: number | null };

/** Names that differ from the neutral ones, and a value that SGLang refuses: 0 is no `top_k`, -1 is. */
function toSglangSampling(sampling: Sampling): Record<string, unknown> {
  const { structured_outputs, top_k, ...rest } = sampling;
  const fields = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
  return { ...fields, ...(top_k === undefined ? {} : { top_k: top_k === 0 ? -1 : top_k }), ...toGrammar(structured_outputs) };
}

function toGrammar(structured: unknown): Record<string, unknown> {
  const grammar = readGrammar(structured);
  switch (grammar?.kind) {
    case undefined:
      return {};
    case "choice":
      return { regex: choicePattern(grammar.choice) };
    case "regex":
      return { regex: grammar.regex };
    case "grammar":
      return { ebnf: grammar.grammar };
    case "json":
      return { response_format: { type: "json_schema", json_schema: { name: "answer", schema: grammar.json } } };
  }
}

/** Ids and logprobs from the pairs of the meta info, held against every other place where the reply says them. */
function sampledOf(
  choice: Choice,
  counted: number | null,
  promptIds: number[] | undefined,
): { ids: number[]; logprobs: (number | null)[]; misaligned: string | null } {
  const pairs = choice.meta_info?.output_token_logprobs ?? null;
  const said = choice.response_token_ids ?? choice.token_ids ?? null;
  const ids = pairs?.map(([, id]) => id) ?? said ?? [];
  const logprobs = pairs ? pairs.map(([logprob]) => (isMeasured(logprob) ? logprob : null)) : ids.map(() => null);
  const prompt = choice.prompt_token_ids ?? null;
  const promptTokens = choice.meta_info?.prompt_tokens ?? null;
  const complaints = [
    pairs && said && pairs.length !== said.length && `${pairs.length} logprobs and ${said.length} response_token_ids`,
    pairs &&
      said &&
      pairs.length === said.length &&
      said.some((id, at) => id !== ids[at]) &&
      "logprobs of other ids than response_token_ids",
    counted !== null && ids.length > 0 && counted !== ids.length && `${counted} completion tokens and ${ids.length} ids`,
    prompt && promptTokens !== null && prompt.length !== promptTokens && `${promptTokens} prompt tokens and ${prompt.length} prompt ids`,
    promptIds && promptComplaint(promptIds, prompt),
  ].filter((one) => typeof one === "string");
  return { ids, logprobs, misaligned: complaints.length === 0 ? null : `the engine gave ${complaints.join(", and ")}` };
}

function finishOf(choice: Choice): FinishReason {
  const type = choice.meta_info?.finish_reason?.type;
  if (type === "abort") return "abort";
  return finishReasons[choice.finish_reason ?? ""] ?? "error";
}

const finishReasons: Record<string, FinishReason> = {
  stop: "stop",
  tool_calls: "tool_calls",
  function_call: "tool_calls",
  length: "length",
  abort: "abort",
  content_filter: "content_filter",
};

/** A stop string, or the id of a stop token. SGLang names its end-of-turn token too, and nothing says which one that is. */
function stopOf(choice: Choice): string | number | null {
  return choice.meta_info?.finish_reason?.matched ?? choice.matched_stop ?? null;
}

function weightsOf(reply: ChatReply, count: number): WeightSpan[] | null {
  const said = reply.metadata ?? reply.choices[0]?.meta_info ?? null;
  const spans = said?.weight_versions?.flatMap(({ version, start, end }) => ({ version, start, end: end ?? null }));
  if (spans?.length) return spans;
  // One name alone is the one at the finish: the turn may have begun under another.
  return said?.weight_version ? [{ version: said.weight_version, start: 0, end: count || null }] : null;
}

const Id = z.number().int().nonnegative();
const Pair = z.tuple([z.number().nullable(), Id]).rest(z.unknown());
const Weights = {
  weight_version: z.string().nullish().catch(null),
  weight_versions: z
    .array(z.looseObject({ version: z.string(), start: z.number(), end: z.number().nullish() }))
    .nullish()
    .catch(null),
};
const Choice = z.looseObject({
  message: z.looseObject({
    content: z.string().nullish(),
    reasoning_content: z.string().nullish(),
    reasoning: z.string().nullish(),
    tool_calls: z
      .array(
        z.looseObject({
          id: z.string().nullish(),
          function: z.looseObject({ name: z.string().nullish(), arguments: z.string().nullish() }),
        }),
      )
      .nullish(),
  }),
  finish_reason: z.string().nullish(),
  matched_stop: z.union([z.string(), z.number()]).nullish(),
  prompt_token_ids: z.array(Id).nullish(),
  response_token_ids: z.array(Id).nullish(),
  token_ids: z.array(Id).nullish(),
  meta_info: z
    .looseObject({
      finish_reason: z.looseObject({ type: z.string(), matched: z.union([z.string(), z.number()]).nullish() }).nullish(),
      prompt_tokens: z.number().int().nullish(),
      completion_tokens: z.number().int().nullish(),
      cached_tokens: z.number().int().nullish(),
      output_token_logprobs: z.array(Pair).nullish(),
      output_top_logprobs: z.array(z.array(Pair).nullable()).nullish(),
      ...Weights,
    })
    .nullish(),
});
type Choice = z.infer<typeof Choice>;
const ChatReply = z.looseObject({
  model: z.string().nullish(),
  choices: z.array(Choice),
  usage: z
    .looseObject({
      prompt_tokens: z.number().int().nullish(),
      completion_tokens: z.number().int().nullish(),
      reasoning_tokens: z.number().int().nullish(),
      prompt_tokens_details: z.looseObject({ cached_tokens: z.number().int().nullish() }).nullish(),
    })
    .nullish(),
  metadata: z.looseObject(Weights).nullish(),
});
type ChatReply = z.infer<typeof ChatReply>;
const ModelList = z.looseObject({ data: z.array(z.looseObject({ id: z.string(), max_model_len: z.number().int().nullish() })) });
const ServerInfo = z.looseObject({ version: z.string().nullish() });
const ModelInfo = z.looseObject({ weight_version: z.string().nullish() });
const Tokenized = z.looseObject({ tokens: z.array(Id) });
const Scored = z.looseObject({
  meta_info: z.looseObject({ input_token_logprobs: z.array(z.tuple([z.number().nullable(), z.number()], z.unknown())) }),
});
const Detokenized = z.looseObject({ text: z.string() });
