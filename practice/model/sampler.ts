/**
 * From logits to a token, in vLLM's order: mask, logprobs (raw), penalties, temperature, truncation, logprobs
 * (processed), draw. A masked token has no probability at all, so where a mask leaves one token its logprob is 0.
 */
import type { SeededRandom } from "./random.ts";

export type SamplingParameters = {
  /** 0 takes the likeliest. */
  temperature: number;
  top_p: number;
  /** 0 is no limit. */
  top_k: number;
  min_p: number;
  presence_penalty: number;
  frequency_penalty: number;
  repetition_penalty: number;
  logit_bias: ReadonlyMap<number, number>;
  /** How many of the likeliest tokens to report beside the sampled one. */
  top_logprobs: number;
};

/** raw: of the model under the mask; processed: of the distribution that was drawn from. */
export type LogprobsMode = "raw_logprobs" | "processed_logprobs";

/** Logprobs in nats. `top` starts with the sampled token and goes on with the likeliest others, as vLLM's does. */
export type Sampled = { id: number; logprob: number; top: { id: number; logprob: number }[] };

/** What vLLM writes for minus infinity, which JSON cannot. */
const impossible = -9999;

export class TokenSampler {
  readonly #parameters: SamplingParameters;
  readonly #random: SeededRandom;
  readonly #mode: LogprobsMode;
  readonly #scores: Float64Array;
  readonly #reported: Float64Array;
  readonly #counts: Uint32Array;
  readonly #inPrompt: Uint8Array;

  constructor(options: {
    parameters: SamplingParameters;
    random: SeededRandom;
    mode: LogprobsMode;
    vocabularySize: number;
    promptIds: readonly number[];
  }) {
    this.#parameters = options.parameters;
    this.#random = options.random;
    this.#mode = options.mode;
    this.#scores = new Float64Array(options.vocabularySize);
    this.#reported = new Float64Array(options.vocabularySize);
    this.#counts = new Uint32Array(options.vocabularySize);
    this.#inPrompt = new Uint8Array(options.vocabularySize);
    for (const id of options.promptIds) this.#inPrompt[id] = 1;
  }

  sample(logits: Float64Array, allowed: Uint8Array | null): Sampled {
    const scores = this.#scores;
    for (let id = 0; id < scores.length; id += 1)
      scores[id] = allowed === null || allowed[id] === 1 ? (logits[id] as number) : Number.NEGATIVE_INFINITY;
    if (this.#mode === "raw_logprobs") logSoftmax(scores, this.#reported);
    this.#penalise();
    const greedy = this.#parameters.temperature === 0;
    if (!greedy) this.#truncate();
    if (this.#mode === "processed_logprobs") logSoftmax(scores, this.#reported);
    const id = greedy ? likeliest(scores) : this.#draw();
    this.#counts[id] = (this.#counts[id] as number) + 1;
    return { id, logprob: this.#report(id), top: this.#top(id) };
  }

  #penalise(): void {
    const { presence_penalty, frequency_penalty, repetition_penalty, logit_bias } = this.#parameters;
    const scores = this.#scores;
    for (const [id, bias] of logit_bias) scores[id] = (scores[id] as number) + bias;
    if (presence_penalty === 0 && frequency_penalty === 0 && repetition_penalty === 1) return;
    for (let id = 0; id < scores.length; id += 1) {
      const count = this.#counts[id] as number;
      let score = scores[id] as number;
      if (count > 0 || this.#inPrompt[id] === 1) score = score > 0 ? score / repetition_penalty : score * repetition_penalty;
      scores[id] = score - frequency_penalty * count - (count > 0 ? presence_penalty : 0);
    }
  }

  /** Temperature, min_p, top_k, top_p. */
  #truncate(): void {
    const { temperature, min_p, top_k, top_p } = this.#parameters;
    const scores = this.#scores;
    for (let id = 0; id < scores.length; id += 1) scores[id] = (scores[id] as number) / temperature;
    if (min_p > 0) dropBelow(scores, (scores[likeliest(scores)] as number) + Math.log(min_p));
    if (top_k === 0 && top_p >= 1) return;
    const order = Float64Array.from(scores).sort().reverse();
    if (top_k > 0 && top_k < order.length) dropBelow(scores, order[top_k - 1] as number);
    if (top_p < 1) dropBelow(scores, smallestOfNucleus(order.subarray(0, top_k > 0 ? top_k : order.length), top_p));
  }

  #draw(): number {
    const scores = this.#scores;
    const highest = scores[likeliest(scores)] as number;
    let sum = 0;
    for (let id = 0; id < scores.length; id += 1) sum += Math.exp((scores[id] as number) - highest);
    let rest = this.#random.uniform() * sum;
    let last = 0;
    for (let id = 0; id < scores.length; id += 1) {
      const weight = Math.exp((scores[id] as number) - highest);
      if (weight === 0) continue;
      last = id;
      rest -= weight;
      if (rest < 0) break;
    }
    // Rounding can leave a rest after the last token.
    return last;
  }

  #report(id: number): number {
    return Math.max(this.#reported[id] as number, impossible);
  }

  #top(sampled: number): Sampled["top"] {
    const { top_logprobs } = this.#parameters;
    if (top_logprobs === 0) return [];
    const others = topIds(this.#reported, top_logprobs).filter((id) => id !== sampled);
    return [sampled, ...others].map((id) => ({ id, logprob: this.#report(id) }));
  }
}

/** log p of every id; `output` may not be `scores`. */
export function logSoftmax(scores: Float64Array, output: Float64Array): void {
  const highest = scores[likeliest(scores)] as number;
  let sum = 0;
  for (let id = 0; id < scores.length; id += 1) sum += Math.exp((scores[id] as number) - highest);
  const total = Math.log(sum);
  for (let id = 0; id < scores.length; id += 1) output[id] = (scores[id] as number) - highest - total;
}

/** The `count` likeliest ids, likeliest first. */
export function topIds(logprobs: Float64Array, count: number): number[] {
  return Array.from(logprobs.keys())
    .sort((one, other) => (logprobs[other] as number) - (logprobs[one] as number) || one - other)
    .slice(0, count);
}

function likeliest(scores: Float64Array): number {
  let best = 0;
  for (let id = 1; id < scores.length; id += 1) if ((scores[id] as number) > (scores[best] as number)) best = id;
  return best;
}

function dropBelow(scores: Float64Array, least: number): void {
  for (let id = 0; id < scores.length; id += 1) if ((scores[id] as number) < least) scores[id] = Number.NEGATIVE_INFINITY;
}

/** The least score of the smallest set that holds `share` of the probability; `order` is sorted downwards. */
function smallestOfNucleus(order: Float64Array, share: number): number {
  const highest = order[0] as number;
  const total = order.reduce((sum, score) => sum + Math.exp(score - highest), 0);
  let held = 0;
  for (const score of order) {
    held += Math.exp(score - highest);
    if (held >= share * total) return score;
  }
  return Number.NEGATIVE_INFINITY;
}
