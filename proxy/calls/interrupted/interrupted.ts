/** That a try makes way for new weights, and how its call goes on behind the gate. */
import { AlidadeError } from "../../../base/errors.ts";
import type { Sampling } from "../../../base/schema/message.ts";
import type { EngineLease } from "../../pool/engine-lease.ts";
import type { Interruption, Otherwise } from "../../pool/engine-slot.ts";
import { derivedSeed } from "../derived-seed.ts";
import type { Sample } from "../sample.ts";
import type { KeptTokens } from "./kept-tokens.ts";

export class Interrupted {
  readonly #leave = new AbortController();
  readonly #why: string | null;
  readonly #isLive: boolean;
  #error = new AlidadeError("engine_paused", "the generation made way for a weight update, and its call goes on behind it");

  /** `why`: what keeps the call from going on; null: its tokens are kept. `isLive`: what its client has seen cannot be asked anew. */
  constructor(why: string | null = null, isLive = false) {
    this.#why = why;
    this.#isLive = isLive;
  }

  get signal(): AbortSignal {
    return this.#leave.signal;
  }

  get error(): AlidadeError {
    return this.#error;
  }

  /** Its tokens are those that the next request goes on from. */
  mayKeep = true;

  ask(otherwise: Otherwise): Interruption {
    const why = this.#why;
    if (why !== null && (otherwise === "drain" || this.#isLive)) return { goes: "drains", why };
    this.mayKeep = why === null;
    this.#leave.abort(this.#error);
    return why === null ? { goes: "on", why } : { goes: "again", why };
  }

  /** The answer is over. Where the engine's parser misread what came behind kept tokens, the call is asked anew from its prompt. */
  async assertRead(sample: Sample, { engine, model }: EngineLease): Promise<void> {
    const isMisread = await sample.isMisread(async (ids) => (await engine.detokenize?.(model, ids, this.signal)) ?? "");
    if (!isMisread) return;
    this.mayKeep = false;
    this.#error = new AlidadeError(
      "engine_error",
      "the engine's parser misread an answer that went on behind a weight update: it is asked anew",
    );
    this.#leave.abort(this.#error);
    throw this.#error;
  }
}

/**
 * The request for what is left of an answer. A seed is another one for each try: with the same one, a token would be drawn by
 * the very numbers that have drawn an earlier one.
 */
export function restOf<Request extends { sampling: Sampling }>(request: Request, { ids }: KeptTokens, number: number): Request {
  const { max_tokens, seed } = request.sampling;
  const sampling = {
    ...request.sampling,
    ...(max_tokens !== undefined && { max_tokens: Math.max(1, max_tokens - ids.length) }),
    ...(seed !== undefined && { seed: derivedSeed(seed, "behind kept tokens", number) }),
  };
  return { ...request, sampling };
}
