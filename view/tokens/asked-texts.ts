/**
 * Asks an engine for the texts of tokens that no file has: those of prompts. It decodes the ids of a window, and asks how its
 * own tokenizer spells that text. Only a token of the answer gets a text, so a text that reads back as other ids gives theirs.
 */
import { messageOf } from "../../base/errors.ts";
import type { Engine } from "../../engines/index.ts";

export type SpellingEngine = Required<Pick<Engine, "detokenize" | "spell">> & Pick<Engine, "baseUrl">;

export type TextEngine = {
  engine: SpellingEngine;
  model: string;
  /** Hash of its tokenizer, as records have it. */
  fingerprint: string;
};

/** A window's text takes milliseconds. A page waits for it. */
const patienceMs = 10_000;
/** After a failure pages do without it for a while. */
const restMs = 10_000;
/** An id at the cut edge of a window may be a part of a character there, and be whole in another window. */
const mostTries = 2;
/** Characters of one window: each token has at most some hundred. */
const longestText = 2_000_000;

export type AskedToken = { id: number; bytes: Uint8Array };

export class AskedTexts {
  readonly #from: TextEngine;
  readonly #tries = new Map<number, number>();
  #rests = 0;
  #failure: string | null = null;
  #asking: Promise<unknown> = Promise.resolve();

  constructor(from: TextEngine) {
    this.#from = from;
  }

  get fingerprint(): string {
    return this.#from.fingerprint;
  }

  /** Why the last question had no answer; null: it had one. */
  get failure(): string | null {
    return this.#failure;
  }

  /** `ids`: consecutive tokens. Asks only if `isUnknown` of any that was not asked often enough. One question at a time. Never rejects. */
  textsOf(ids: number[], isUnknown: (id: number) => boolean): Promise<AskedToken[]> {
    const asked = this.#asking.then(() => this.#textsOf(ids, isUnknown));
    this.#asking = asked;
    return asked;
  }

  async #textsOf(ids: number[], isUnknown: (id: number) => boolean): Promise<AskedToken[]> {
    const open = new Set(ids.filter((id) => isUnknown(id) && (this.#tries.get(id) ?? 0) < mostTries));
    if (open.size === 0 || Date.now() < this.#rests) return [];
    const { engine, model } = this.#from;
    const signal = AbortSignal.timeout(patienceMs);
    try {
      const text = await engine.detokenize(model, ids, signal);
      if (text.length > longestText) throw new Error(`${ids.length} tokens became ${text.length} characters`);
      const spelled = await engine.spell(model, text, signal);
      for (const id of open) this.#tries.set(id, (this.#tries.get(id) ?? 0) + 1);
      this.#failure = null;
      return spelled.filter(({ id }) => isUnknown(id));
    } catch (error) {
      this.#rests = Date.now() + restMs;
      this.#failure = signal.aborted ? `no answer in ${patienceMs / 1000} s` : messageOf(error).slice(0, 300);
      return [];
    }
  }
}
