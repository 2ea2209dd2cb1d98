/**
 * Requests take turns on one event loop: a token at a time while sampling, a few while a prompt is read. So a long
 * prompt never keeps another request, or the health check, from moving.
 */
import { ChoiceGrammar } from "./grammar/choice-grammar.ts";
import type { TextForm } from "./grammar/form.ts";
import { FormGrammar } from "./grammar/form-grammar.ts";
import { blockSize, type KeyValues } from "./model/key-values.ts";
import { SeededRandom } from "./model/random.ts";
import { type LogprobsMode, logSoftmax, type Sampled, type SamplingParameters, TokenSampler, topIds } from "./model/sampler.ts";
import { Transformer } from "./model/transformer.ts";
import { randomWeights, type Weights } from "./model/weights.ts";
import { PrefixCache } from "./prefix-cache.ts";
import { endOfTurn, logitBias, vocabularySize } from "./tokenizer/vocabulary.ts";

/** Room for 131 072 tokens with the random weights: a dozen sessions of a real harness that share their start. */
const cachedBytes = 64 * 1024 * 1024;
/** Prompt tokens between two looks at the other requests: about 2 ms. */
const promptStride = 16;

/** The policy: weights, what they have read, and the seed of requests that bring none. */
export type PracticePolicy = {
  /** The name of these weights in answers. */
  version: string;
  transformer: Transformer;
  cache: PrefixCache;
  seed: number;
  logprobsMode: LogprobsMode;
  /** Tokens sampled so far, over all requests and all weights of one server. */
  counted: { sampledTokens: number };
};

/** Makes a policy with an empty cache. Without `weights` they are random. */
export function newPolicy(options: {
  seed: number;
  weights?: Weights;
  version?: string;
  logprobsMode?: LogprobsMode;
  counted?: PracticePolicy["counted"];
}): PracticePolicy {
  const transformer = new Transformer(options.weights ?? randomWeights(options.seed, logitBias));
  const blockBytes = 2 * blockSize * transformer.rowWidth * Float32Array.BYTES_PER_ELEMENT;
  return {
    version: options.version ?? "practice",
    transformer,
    cache: new PrefixCache(Math.floor(cachedBytes / blockBytes)),
    seed: options.seed,
    logprobsMode: options.logprobsMode ?? "raw_logprobs",
    counted: options.counted ?? { sampledTokens: 0 },
  };
}

export type PracticeRequest = {
  promptIds: readonly number[];
  sampling: SamplingParameters;
  maxTokens: number;
  /** The randomness of this request; the same seed after the same prompt gives the same tokens. */
  seed: number;
  stopTokenIds: readonly number[];
  choices: readonly string[] | null;
  /** What the text is held to; null where it is free, or where there are choices. */
  form: TextForm | null;
  signal: AbortSignal;
};

/** A sampled token, and why it is the last one. `stop` is the id that ended it where that is not the end of turn. */
export type GeneratedToken = Sampled & { end: { reason: "stop" | "length"; stop: number | null } | null };

/** Samples a turn. Throws the signal's reason; leaving the iteration early ends the generation. */
export async function* generate(
  policy: PracticePolicy,
  request: PracticeRequest,
  onCached: (tokens: number) => void,
): AsyncGenerator<GeneratedToken> {
  const { promptIds, maxTokens, signal } = request;
  const sampler = new TokenSampler({
    parameters: request.sampling,
    random: new SeededRandom(policy.seed, request.seed, 2),
    mode: policy.logprobsMode,
    vocabularySize,
    promptIds,
  });
  const grammar = grammarOf(request);
  const sequence = new Sequence(policy);
  onCached(await sequence.read(promptIds, signal));
  let next = promptIds.at(-1) as number;
  for (let count = 1; ; count += 1) {
    sequence.append(next, true);
    const sampled = sampler.sample(policy.transformer.logits, grammar?.allowed ?? null);
    grammar?.advance(sampled.id);
    policy.counted.sampledTokens += 1;
    const stopped = sampled.id === endOfTurn || request.stopTokenIds.includes(sampled.id);
    const reason = stopped ? "stop" : count >= maxTokens ? "length" : null;
    yield { ...sampled, end: reason && { reason, stop: stopped && sampled.id !== endOfTurn ? sampled.id : null } };
    if (reason !== null) return;
    next = sampled.id;
    await others(signal);
  }
}

function grammarOf({ choices, form }: PracticeRequest): ChoiceGrammar | FormGrammar | null {
  if (choices !== null) return new ChoiceGrammar(choices);
  return form === null ? null : new FormGrammar(form);
}

/** For each prompt token after the first: its logprob, its rank from 1, and the likeliest others. Never from the cache. */
export type ScoredToken = { id: number; logprob: number; rank: number; top: { id: number; logprob: number }[] };

/** Teacher forcing: what the policy says of a text that is given. Raw logprobs, under no grammar. */
export async function score(
  policy: PracticePolicy,
  ids: readonly number[],
  top: number,
  signal: AbortSignal,
): Promise<(ScoredToken | null)[]> {
  const sequence = new Sequence(policy);
  const logprobs = new Float64Array(vocabularySize);
  const scored: (ScoredToken | null)[] = [null];
  for (const [position, id] of ids.slice(1).entries()) {
    sequence.append(ids[position] as number, true);
    logSoftmax(policy.transformer.logits, logprobs);
    const logprob = logprobs[id] as number;
    const likeliest = top === 0 ? [] : topIds(logprobs, top).map((other) => ({ id: other, logprob: logprobs[other] as number }));
    scored.push({ id, logprob, rank: 1 + logprobs.reduce((above, other) => above + (other > logprob ? 1 : 0), 0), top: likeliest });
    if (position % promptStride === 0) await others(signal);
  }
  return scored;
}

/** Tokens that have been read, with their keys and values; full blocks are shared through the cache. */
class Sequence {
  readonly #policy: PracticePolicy;
  readonly #ids: number[] = [];
  readonly #past: KeyValues;

  constructor(policy: PracticePolicy) {
    this.#policy = policy;
    this.#past = policy.transformer.begin();
  }

  /** Reads all ids but the last one, which gives the logits. Returns how many tokens were cached already. */
  async read(ids: readonly number[], signal: AbortSignal): Promise<number> {
    const end = ids.length - 1;
    let found = 0;
    while (this.#ids.length < end) {
      found += this.#adopt(ids, end);
      const { cache } = this.#policy;
      const reading = cache.startReading(this.#past.blocks.at(-1), this.#nextBlock(ids));
      // Another request is at this very block, for rollouts of one task start alike: it will be there in a moment.
      if (reading === null) await others(signal);
      else
        try {
          await this.#readBlock(ids, end, signal);
        } finally {
          cache.endReading(reading);
        }
    }
    return found;
  }

  async #readBlock(ids: readonly number[], end: number, signal: AbortSignal): Promise<void> {
    const blockEnd = Math.min(end, this.#ids.length + blockSize);
    while (this.#ids.length < blockEnd) {
      this.append(ids[this.#ids.length] as number, false);
      if (this.#ids.length % promptStride === 0) await others(signal);
    }
  }

  #nextBlock(ids: readonly number[]): readonly number[] {
    return ids.slice(this.#ids.length, this.#ids.length + blockSize);
  }

  append(id: number, wantLogits: boolean): void {
    this.#policy.transformer.step(id, this.#past, wantLogits);
    this.#ids.push(id);
    if (this.#past.length % blockSize !== 0) return;
    const [block, previous] = [this.#past.blocks.at(-1), this.#past.blocks.at(-2)];
    if (block !== undefined) this.#past.replaceLast(this.#policy.cache.keep(previous, this.#ids.slice(-blockSize), block));
  }

  /** Takes over the blocks that are known for the ids that come next; returns their tokens. */
  #adopt(ids: readonly number[], end: number): number {
    const chain = [];
    const start = this.#ids.length;
    while (this.#ids.length + blockSize <= end) {
      const previous = this.#past.blocks.at(-1);
      const tokens = this.#nextBlock(ids);
      const block = this.#policy.cache.find(previous, tokens);
      if (block === undefined) break;
      chain.push({ previous, tokens });
      this.#past.adopt(block);
      for (const id of tokens) this.#ids.push(id);
    }
    this.#policy.cache.touch(chain);
    return this.#ids.length - start;
  }
}

/** Lets other generations take a step. */
async function others(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
  signal.throwIfAborted();
}
