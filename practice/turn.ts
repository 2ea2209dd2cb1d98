/** From tokens to text: decoding, stop strings, and where a turn ends. What streams and what does not share it. */
import { generate, type PracticePolicy, type PracticeRequest } from "./generation.ts";
import type { Sampled } from "./model/sampler.ts";
import { StopStrings } from "./stop-strings.ts";
import { TextStream, textOfToken } from "./tokenizer/vocabulary.ts";

export type PracticeFinish = "stop" | "length";

/** One sampled token with the text that it set free. */
export type TokenPiece = {
  token: Sampled;
  text: string;
  finish: { reason: PracticeFinish; stop: string | number | null } | null;
};

export type Counted = { prompt_tokens: number; completion_tokens: number; cached_tokens: number };

/** Samples a turn and decodes it; `usage` is up to date at every piece. */
export async function* readTurn(
  policy: PracticePolicy,
  request: PracticeRequest & { stops: readonly string[] },
  usage: Counted,
): AsyncGenerator<TokenPiece> {
  const decoder = new TextStream();
  const stops = new StopStrings(request.stops);
  const tokens = generate(policy, request, (cached) => {
    usage.cached_tokens = cached;
  });
  for await (const { end, ...token } of tokens) {
    usage.completion_tokens += 1;
    const decoded = decoder.feed(token.id) + (end === null ? "" : decoder.finish());
    const { text, stop } = stops.feed(decoded);
    if (stop !== null) {
      yield { token, text, finish: { reason: "stop", stop } };
      return;
    }
    yield { token, text: end === null ? text : text + stops.finish(), finish: end };
  }
}

/** A token's text and bytes beside its logprob. A part of a character has neither, as in vLLM. */
export function toLogprob(token: { id: number; logprob: number }) {
  const text = textOfToken(token.id);
  return { token: text, logprob: token.logprob, bytes: [...Buffer.from(text)] };
}

/** Names the token by its id, as vLLM does for `return_tokens_as_token_ids`: texts of tokens are not unique. */
export function toNumberedLogprob(token: { id: number; logprob: number }) {
  return { ...toLogprob(token), token: toNumberedToken(token.id) };
}

export function toNumberedToken(id: number): string {
  return `token_id:${id}`;
}

export function toUsage({ prompt_tokens, completion_tokens, cached_tokens }: Counted) {
  return {
    prompt_tokens,
    total_tokens: prompt_tokens + completion_tokens,
    completion_tokens,
    prompt_tokens_details: { cached_tokens },
  };
}
