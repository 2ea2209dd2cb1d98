/**
 * Finds the blocks that an earlier request with the same first tokens left behind. A block is known by the block before
 * it and its own tokens, so a hit means that every token so far is the same, and its numbers are the same too.
 */
import type { KeyValueBlock } from "./model/key-values.ts";

export class PrefixCache {
  readonly #blocks = new Map<string, KeyValueBlock>();
  readonly #reading = new Set<string>();
  readonly #capacity: number;

  /** `capacity` is in blocks; the ones that were not used for longest are dropped first. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#blocks.size;
  }

  /** The block after `previous` that holds exactly these tokens. */
  find(previous: KeyValueBlock | undefined, tokens: readonly number[]): KeyValueBlock | undefined {
    return this.#blocks.get(keyOf(previous, tokens));
  }

  /** Keeps a full block, or returns the equal one that is kept already. */
  keep(previous: KeyValueBlock | undefined, tokens: readonly number[], block: KeyValueBlock): KeyValueBlock {
    const key = keyOf(previous, tokens);
    const known = this.#blocks.get(key);
    if (known !== undefined) return known;
    this.#blocks.set(key, block);
    if (this.#blocks.size > this.#capacity) this.#forgetOldest();
    return block;
  }

  /** Announces that the caller computes this block; null when another one already does. */
  startReading(previous: KeyValueBlock | undefined, tokens: readonly number[]): string | null {
    const key = keyOf(previous, tokens);
    if (this.#reading.has(key)) return null;
    this.#reading.add(key);
    return key;
  }

  /** Returns a key of `startReading`, after success and after failure. */
  endReading(key: string): void {
    this.#reading.delete(key);
  }

  /** Marks the blocks of a sequence as used. Last block first: a start that is dropped makes all after it unreachable. */
  touch(chain: readonly { previous: KeyValueBlock | undefined; tokens: readonly number[] }[]): void {
    for (const { previous, tokens } of chain.toReversed()) {
      const key = keyOf(previous, tokens);
      const block = this.#blocks.get(key);
      if (block === undefined) continue;
      this.#blocks.delete(key);
      this.#blocks.set(key, block);
    }
  }

  /** Nothing that was kept is found again. What is being read goes on, and is kept anew. */
  reset(): void {
    this.#blocks.clear();
  }

  #forgetOldest(): void {
    for (const key of this.#blocks.keys()) {
      this.#blocks.delete(key);
      return;
    }
  }
}

function keyOf(previous: KeyValueBlock | undefined, tokens: readonly number[]): string {
  return `${previous?.id ?? 0}:${tokens.join(",")}`;
}
