/**
 * Token ids as the text in which servers send them: decimal numbers with a comma between. The prompt of a turn begins
 * with the bytes of the turn before it, so comparing bytes tells at once how much of it is new, and only that is parsed.
 */

import { keptBytes } from "./kept-bytes.ts";

const comma = 44;
/** A vocabulary fits into 32 bits, and so do the arrays that ids are kept in. */
const maxId = 0x7fff_ffff;

/** The first ids of a text: how many they are, and how many bytes (without the comma behind them). */
export type TextHead = { ids: number; bytes: number };

/** Holds only what it adds to another text, or the calls of a session would hold its whole context once each. */
export class IdText {
  /** How many ids. */
  readonly length: number;
  readonly #base: { text: IdText; bytes: number } | null;
  readonly #own: Buffer;
  /** All of it: only for speed. */
  #whole: Buffer | null = null;

  /** `own` is a copy: what it comes from may be as large as a read of the socket. It begins with a comma behind a base. */
  private constructor(base: { text: IdText; head: TextHead } | null, own: Buffer, count: number) {
    this.#base = base && { text: base.text, bytes: base.head.bytes };
    this.#own = own;
    this.length = (base?.head.ids ?? 0) + count;
  }

  static of(ids: ArrayLike<number>): IdText {
    return new IdText(null, toBytes(ids), ids.length);
  }

  /** A text of `count` ids. */
  static ofText(text: Uint8Array, count: number): IdText {
    return new IdText(null, keptBytes(text), count);
  }

  /** The head of this text, then `ids`. */
  extend(head: TextHead, ids: ArrayLike<number>): IdText {
    return this.extendText(head, toBytes(ids), ids.length);
  }

  /** The head of this text, then a text of `count` ids. */
  extendText(head: TextHead, text: Uint8Array, count: number): IdText {
    if (head.ids === 0) return IdText.ofText(text, count);
    return new IdText({ text: this, head }, keptBytes(Buffer.from(count === 0 ? "" : ","), text), count);
  }

  /** All of this text, then `ids`. */
  append(ids: ArrayLike<number>): IdText {
    return this.extend({ ids: this.length, bytes: this.#byteLength }, ids);
  }

  /** The text in as many pieces as it was built of. */
  get pieces(): readonly Buffer[] {
    return this.#pieces();
  }

  /** Is this the text? */
  is(text: Buffer): boolean {
    return text.length === this.#byteLength && this.#isHeadOf(text);
  }

  /** The last `count` ids, or all of fewer. */
  tail(count: number): number[] {
    const own = this.#own.length > 0 ? this.#own.toString("latin1").split(",").slice(-count) : [];
    // Behind a base it begins with a comma, and what stands before that is no id.
    return own.length === count && own[0] !== "" ? own.map(Number) : this.toIds().slice(Math.max(0, this.length - count));
  }

  get bytes(): Buffer {
    const pieces = this.#pieces();
    return pieces.length === 1 ? (pieces[0] as Buffer) : this.#keep(Buffer.concat(pieces));
  }

  toIds(): number[] {
    return parseIds(this.bytes) ?? [];
  }

  /** At most the first `ids` of them. */
  head(ids: number): TextHead {
    if (ids >= this.length) return { ids: this.length, bytes: this.bytes.length };
    let at = 0;
    for (let left = ids; left > 0; at++) if (this.bytes[at] === comma) left--;
    return { ids, bytes: Math.max(0, at - 1) };
  }

  /** What this text and another both begin with. */
  commonHead(text: Buffer): TextHead {
    // Nearly always the other one goes on from all of this: that is seen without putting it together.
    if (this.#isHeadOf(text)) return { ids: this.length, bytes: this.#byteLength };
    const ours = this.bytes;
    let end = commonBytes(ours, text);
    // Where they part within an id, only those before it are the same.
    if (!isEnd(ours, end) || !isEnd(text, end)) end = end === 0 ? -1 : ours.lastIndexOf(comma, end - 1);
    return end <= 0 ? { ids: 0, bytes: 0 } : { ids: this.length - countCommas(ours, end), bytes: end };
  }

  get #byteLength(): number {
    return (this.#base?.bytes ?? 0) + this.#own.length;
  }

  #isHeadOf(text: Buffer): boolean {
    if (text.length < this.#byteLength || !isEnd(text, this.#byteLength)) return false;
    let at = 0;
    for (const piece of this.#pieces()) {
      if (text.compare(piece, 0, piece.length, at, at + piece.length) !== 0) return false;
      at += piece.length;
    }
    return true;
  }

  /** Only the newest text of a conversation is held whole. */
  #keep(whole: Buffer): Buffer {
    for (let text = this.#base?.text; text; text = text.#base?.text) text.#whole = null;
    this.#whole = whole;
    return whole;
  }

  /** All of it, in order. */
  #pieces(): Buffer[] {
    if (this.#whole !== null) return [this.#whole];
    const pieces: Buffer[] = [];
    let end = Number.POSITIVE_INFINITY;
    for (let text: IdText = this; ; ) {
      const base: { text: IdText; bytes: number } | null = text.#base;
      const start = base?.bytes ?? 0;
      if (text.#whole !== null) {
        pieces.push(text.#whole.subarray(0, end));
        break;
      }
      if (end > start) pieces.push(text.#own.subarray(0, end - start));
      if (base === null) break;
      end = Math.min(end, start);
      text = base.text;
    }
    return pieces.reverse();
  }
}

/** An id text from text, or from numbers only. Prefer the text: reading the numbers may trigger a parse. */
export function textOfIds(ids: { readonly token_ids: number[]; text?: Buffer }): Buffer {
  return ids.text ?? toBytes(ids.token_ids);
}

/** The ids of a text; null where it is no list of natural numbers. */
export function parseIds(text: Uint8Array): number[] | null {
  let ids: unknown;
  try {
    ids = JSON.parse(`[${Buffer.from(text.buffer, text.byteOffset, text.byteLength).toString("latin1")}]`);
  } catch {
    return null;
  }
  return isIds(ids) ? ids : null;
}

export function isIds(value: unknown): value is number[] {
  if (!Array.isArray(value)) return false;
  for (const id of value as unknown[]) if (!Number.isInteger(id) || (id as number) < 0 || (id as number) > maxId) return false;
  return true;
}

function toBytes(ids: ArrayLike<number>): Buffer {
  return Buffer.from(JSON.stringify(Array.isArray(ids) ? ids : Array.from(ids)).slice(1, -1));
}

/** An id may end here: at the end of the text, or at a comma. */
function isEnd(text: Buffer, at: number): boolean {
  return at === text.length || text[at] === comma;
}

function countCommas(text: Buffer, from: number): number {
  let count = 0;
  for (let at = from; at < text.length; at++) if (text[at] === comma) count++;
  return count;
}

/** Length of the common beginning. Nearly all of the work is memcmp. */
function commonBytes(a: Buffer, b: Buffer): number {
  const areSame = (from: number, to: number): boolean => a.compare(b, from, to, from, to) === 0;
  let same = 0;
  let end = Math.min(a.length, b.length);
  if (areSame(0, end)) return end;
  // They differ somewhere from `same` to before `end`.
  while (end - same > 1) {
    const middle = (same + end) >> 1;
    if (areSame(same, middle)) same = middle;
    else end = middle;
  }
  return same;
}
