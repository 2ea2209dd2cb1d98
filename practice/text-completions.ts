/** `POST /v1/completions` in vLLM's shapes: text or token ids in, and teacher forcing through `prompt_logprobs`. */

import type { PracticeExchange } from "./exchange.ts";
import { type ScoredToken, score } from "./generation.ts";
import { askedForm } from "./grammar/asked-form.ts";
import type { PracticeModel } from "./model/practice-model.ts";
import { readAs } from "./pictures.ts";
import { CompletionRequest, knownId, parseBody, room, toSampling } from "./requests.ts";
import { encode, textOfToken } from "./tokenizer/vocabulary.ts";
import { type Counted, readTurn, type TokenPiece, toNumberedToken, toUsage } from "./turn.ts";
import { WireError } from "./wire-error.ts";

/** vLLM's, and OpenAI's, for this route. */
const defaultMaxTokens = 16;

export async function textCompletions(model: PracticeModel, exchange: PracticeExchange): Promise<void> {
  const request = parseBody(CompletionRequest, exchange.body);
  model.check(request.model);
  model.checkListed({ logprobs: request.logprobs, prompt_logprobs: request.prompt_logprobs });
  if (request.stream && typeof request.prompt_logprobs === "number")
    throw new WireError(400, "`prompt_logprobs` are not available when `stream=True`.", "prompt_logprobs");
  const promptIds = typeof request.prompt === "string" ? encode(request.prompt) : request.prompt.map(knownId);
  const usage: Counted = { prompt_tokens: promptIds.length, completion_tokens: 0, cached_tokens: 0 };
  const generation = {
    promptIds: promptIds.map(readAs),
    sampling: toSampling(request, request.logprobs ?? 0),
    maxTokens: room(promptIds.length, model.maxModelLen, request.max_tokens ?? defaultMaxTokens),
    seed: request.seed ?? model.nextSeed(),
    stops: request.stop,
    stopTokenIds: request.stop_token_ids ?? [],
    choices: request.structured_outputs?.choice ?? null,
    form: askedForm(request),
    signal: exchange.signal,
  };
  const head = { id: `cmpl-${exchange.requestId}`, object: "text_completion", created: Math.floor(Date.now() / 1000), model: model.name };
  const { policy } = model;
  const pieces = readTurn(policy, generation, usage);
  const ids = request.return_token_ids === true ? promptIds : null;
  if (request.stream) return exchange.stream(chunks(request, ids, usage, pieces, head));
  const scores =
    typeof request.prompt_logprobs === "number"
      ? await score(policy, promptIds.map(readAs), request.prompt_logprobs, exchange.signal)
      : null;
  exchange.json(200, await whole(request, ids, usage, pieces, head, scores && toPromptLogprobs(scores)));
}

async function* chunks(
  request: CompletionRequest,
  promptIds: number[] | null,
  usage: Counted,
  pieces: AsyncGenerator<TokenPiece>,
  head: object,
): AsyncGenerator<unknown> {
  const offsets = new Offsets();
  for await (const piece of pieces) {
    const first = usage.completion_tokens === 1;
    yield {
      ...head,
      choices: [
        {
          index: 0,
          text: piece.text,
          logprobs: toLogprobs(request, [piece], offsets),
          finish_reason: piece.finish?.reason ?? null,
          stop_reason: piece.finish?.stop ?? null,
          prompt_token_ids: first ? promptIds : null,
          token_ids: promptIds && [piece.token.id],
        },
      ],
    };
  }
  if (request.stream_options?.include_usage) yield { ...head, choices: [], usage: toUsage(usage) };
}

async function whole(
  request: CompletionRequest,
  promptIds: number[] | null,
  usage: Counted,
  pieces: AsyncGenerator<TokenPiece>,
  head: object,
  promptLogprobs: unknown,
): Promise<Record<string, unknown>> {
  const read = await Array.fromAsync(pieces);
  return {
    ...head,
    choices: [
      {
        index: 0,
        text: read.map(({ text }) => text).join(""),
        logprobs: toLogprobs(request, read, new Offsets()),
        finish_reason: read.at(-1)?.finish?.reason ?? null,
        stop_reason: read.at(-1)?.finish?.stop ?? null,
        token_ids: promptIds && read.map(({ token }) => token.id),
        prompt_logprobs: promptLogprobs,
        prompt_token_ids: promptIds,
        routed_experts: null,
      },
    ],
    service_tier: null,
    system_fingerprint: null,
    usage: toUsage(usage),
    kv_transfer_params: null,
  };
}

/** Where each token starts in the text that the tokens spell. */
class Offsets {
  #at = 0;

  next(text: string): number {
    const offset = this.#at;
    this.#at += text.length;
    return offset;
  }
}

function toLogprobs(request: CompletionRequest, pieces: readonly TokenPiece[], offsets: Offsets): unknown {
  if (typeof request.logprobs !== "number") return null;
  const nameOf = request.return_tokens_as_token_ids ? toNumberedToken : textOfToken;
  return {
    text_offset: pieces.map(({ token }) => offsets.next(textOfToken(token.id))),
    token_logprobs: pieces.map(({ token }) => token.logprob),
    tokens: pieces.map(({ token }) => nameOf(token.id)),
    // Keyed by text, as the protocol has it: where two tokens read alike the likelier one stays.
    top_logprobs: pieces.map(({ token }) => {
      const listed = token.top.length > 0 ? token.top : [token];
      return Object.fromEntries(listed.toReversed().map(({ id, logprob }) => [nameOf(id), logprob]));
    }),
  };
}

/** `[null, {"<id>": {logprob, rank, decoded_token}}, …]`: the prompt's token first, then the likeliest ones. */
export function toPromptLogprobs(scores: readonly (ScoredToken | null)[]): unknown[] {
  return scores.map((score) => {
    if (score === null) return null;
    const entries = score.top.map(({ id, logprob }, index) => [id, { logprob, rank: index + 1, decoded_token: textOfToken(id) }] as const);
    const own = [score.id, { logprob: score.logprob, rank: score.rank, decoded_token: textOfToken(score.id) }] as const;
    return Object.fromEntries([own, ...entries.filter(([id]) => id !== score.id)]);
  });
}
