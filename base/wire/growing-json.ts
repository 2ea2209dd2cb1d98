/**
 * Bodies that grow: a harness sends its whole conversation with every turn, and all but its end repeats the request before,
 * byte for byte. The repeated part is compared and reused; only the rest is parsed. The value equals `parseJson` of the
 * same bytes, with one difference: repeated items are the same objects as before, so they must not be changed.
 */
import { parseJson } from "./json.ts";
import { skipString, valuesIn } from "./json-text.ts";

/** Smaller bodies are parsed faster than they are looked at. */
const worthwhileBytes = 16 * 1024;

/** An agent and ten sub-agents take turns; of more conversations than these at a time the oldest is parsed whole again. */
const conversationsKept = 16;

/** Bytes of all kept bodies: two of the largest that a sandbox may send, with room to grow. */
const mostBytesKept = 96 * 1024 * 1024;

const none: readonly string[] = [];

/** A body that was read. */
type KnownBody = {
  /** Up to the end of the last item, and room for more. */
  bytes: Buffer;
  field: string;
  keys: readonly string[];
  /** Where the list begins, behind its bracket. */
  start: number;
  /** Where each item of the list ends. */
  ends: number[];
  items: unknown[];
  /** What stood behind the last item: the tools, in many bodies. */
  tail: Buffer;
  /** At most so many values of JSON stand in all of it. */
  values: number;
};

/** A body that was read whole, and where its list stands. */
export type ReadBody = { value: unknown; list: { start: number; ends: number[] } | null };

/** What a body has that no body before it had. */
export type Brought = {
  bytes: number;
  /** Values of JSON among them. */
  values: number;
  allBytes: number;
  /** At most so many values of JSON stand in all of it. */
  allValues: number;
  /** Bytes that have to be parsed: those that are new, and what stands around the list. */
  parsed: number;
};

/** Throws what `parseJson` throws. */
export function readWhole(bytes: Buffer, field: string, keys: readonly string[] = none): ReadBody {
  const value = parseJson(bytes, { verbatim: { field, keys } });
  return { value, list: bytes.length < worthwhileBytes ? null : readFirst(bytes, field, value) };
}

export class GrowingJson {
  /** The one that was read last comes last. One that another continues is gone: its bytes may be the other's. */
  #known: KnownBody[] = [];

  /** A body that has more bytes has at least the rest of them anew. */
  get longest(): number {
    return Math.max(0, ...this.#known.map(({ ends, tail }) => (ends.at(-1) as number) + tail.length));
  }

  /**
   * Looks without parsing. `mostValues`: how many values may be new among so many new bytes; of more than these no more
   * are counted, and what it throws is thrown before any is.
   */
  broughtBy(
    bytes: Buffer,
    field: string,
    keys: readonly string[] = none,
    mostValues = (_bytes: number): number => Number.POSITIVE_INFINITY,
  ): Brought {
    const { known, shared } = this.#nearest(bytes, field, keys);
    const from = known?.ends[shared - 1] ?? 0;
    const fresh = bytes.subarray(from, bytes.length - (known ? sharedEnd(known.tail, bytes.subarray(from)) : 0));
    const values = valuesIn(fresh, mostValues(fresh.length));
    const allValues = known ? sharedValues(known, shared, bytes.length - from - fresh.length) + values - 1 : values;
    return { bytes: fresh.length, values, allBytes: bytes.length, allValues, parsed: bytes.length - from };
  }

  /**
   * `field`: the list at the top of the body that grows at its end. `keys`: what is verbatim in it, the same list for
   * each body that is to be known again. `values`: how many values of JSON stand in it. Throws what `parseJson` throws.
   */
  parse(bytes: Buffer, field: string, keys: readonly string[] = none, values = valuesIn(bytes)): unknown {
    const { known, shared } = this.#nearest(bytes, field, keys);
    const grown = known && goOn(known, shared, bytes, values);
    if (!grown) return this.keepRead(bytes, field, keys, readWhole(bytes, field, keys), values);
    this.#keep(grown.known, grown.instead);
    return grown.value;
  }

  /** The value of a body that was read elsewhere, kept for the next one. */
  keepRead(bytes: Buffer, field: string, keys: readonly string[] = none, { value, list }: ReadBody, values: number): unknown {
    const items = list && listIn(value, field);
    if (!list || !items) return value;
    const end = list.ends.at(-1) as number;
    const tail = Buffer.from(bytes.subarray(end));
    this.#keep({ bytes: memoryFor(bytes, end, null), field, keys, ...list, items: [...items], tail, values }, null);
    return value;
  }

  clear(): void {
    this.#known = [];
  }

  /** The one with which this body has most items in common. */
  #nearest(bytes: Buffer, field: string, keys: readonly string[]): { known: KnownBody | null; shared: number } {
    let nearest: { known: KnownBody | null; shared: number } = { known: null, shared: 0 };
    for (const known of this.#known) {
      // Another dialect's conversation may lie in a list of the same name.
      const shared = known.field === field && known.keys === keys ? sharedItems(known, bytes) : 0;
      if (shared > nearest.shared) nearest = { known, shared };
    }
    return nearest;
  }

  #keep(known: KnownBody, instead: KnownBody | null): void {
    this.#known = [...this.#known.filter((one) => one !== instead), known].slice(-conversationsKept);
    while (this.#known.length > 1 && this.#known.reduce((sum, { bytes, tail }) => sum + bytes.length + tail.length, 0) > mostBytesKept)
      this.#known.shift();
  }
}

/** How many items of the list both bodies begin with. */
function sharedItems({ bytes: before, ends }: KnownBody, bytes: Buffer): number {
  // All of them, nearly always; where not, the last one is looked for by halves.
  let [same, different] = [0, ends.length + 1];
  for (let tried = ends.length; different - same > 1; tried = (same + different) >> 1) {
    const [from, to] = [ends[same - 1] ?? 0, ends[tried - 1] as number];
    const isSame = to <= bytes.length && before.compare(bytes, from, to, from, to) === 0;
    if (isSame) same = tried;
    else different = tried;
  }
  return same;
}

/** How many bytes both end with. */
function sharedEnd(before: Buffer, bytes: Buffer): number {
  let [same, different] = [0, Math.min(before.length, bytes.length) + 1];
  for (let tried = different - 1; different - same > 1; tried = (same + different) >> 1) {
    if (before.subarray(before.length - tried).equals(bytes.subarray(bytes.length - tried))) same = tried;
    else different = tried;
  }
  return same;
}

/** How many values stand in what a body shares with a known one: so many items, and so many bytes of its end. */
function sharedValues({ bytes, ends, tail, values }: KnownBody, items: number, end: number): number {
  const others = [bytes.subarray(ends[items - 1], ends.at(-1)), tail.subarray(0, tail.length - end)];
  return others.reduce((left, other) => left - valuesIn(other) + 1, values);
}

/** Null where the rest is not as simple as it should be. */
function goOn(
  before: KnownBody,
  shared: number,
  bytes: Buffer,
  values: number,
): { known: KnownBody; instead: KnownBody | null; value: unknown } | null {
  let rest = skipSpace(bytes, before.ends[shared - 1] as number);
  if (bytes[rest] === comma) {
    rest = skipSpace(bytes, rest + 1);
    if (bytes[rest] !== openBrace) return null;
  } else if (bytes[rest] !== closeBracket) return null;
  let value: unknown;
  try {
    value = parseJson(Buffer.concat([bytes.subarray(0, before.start), bytes.subarray(rest)]), { verbatim: before });
  } catch {
    // The error message covers the whole body.
    return null;
  }
  const list = readList(bytes, rest);
  const fresh = listIn(value, before.field);
  if (!list || fresh?.length !== list.ends.length || !endsWithout(before.field, bytes, list.close + 1)) return null;
  const items = [...before.items.slice(0, shared), ...fresh];
  const ends = [...before.ends.slice(0, shared), ...list.ends];
  const end = ends.at(-1) as number;
  const tail = bytes.subarray(end);
  // One that parts from it before its end is another conversation, and leaves it as it is.
  const instead = shared === before.ends.length ? before : null;
  return {
    known: {
      ...before,
      bytes: memoryFor(bytes, end, instead),
      ends,
      items,
      tail: before.tail.equals(tail) ? before.tail : Buffer.from(tail),
      values,
    },
    instead,
    value: Object.assign(value as object, { [before.field]: [...items] }),
  };
}

/**
 * The body up to `end`, in the memory of the one that it continues while there is room: a buffer for each body that lives
 * until the next one comes is what makes a garbage collector walk through the whole heap.
 */
function memoryFor(bytes: Buffer, end: number, before: KnownBody | null): Buffer {
  if (before && end <= before.bytes.length) {
    const same = before.ends.at(-1) as number;
    bytes.copy(before.bytes, same, same, end);
    return before.bytes;
  }
  const kept = Buffer.allocUnsafeSlow(Math.ceil(end * 1.5));
  bytes.copy(kept, 0, 0, end);
  return kept;
}

/** Null where the body has no such list, or has it twice, or items that are no objects. */
function readFirst(bytes: Buffer, field: string, value: unknown): ReadBody["list"] {
  const items = listIn(value, field);
  const start = items && findList(bytes, field);
  const list = start ? readList(bytes, skipSpace(bytes, start)) : null;
  if (!items || !start || !list || list.ends.length === 0 || list.ends.length !== items.length) return null;
  if (!endsWithout(field, bytes, list.close + 1)) return null;
  return { start, ends: list.ends };
}

function listIn(value: unknown, field: string): unknown[] | null {
  const list = (value as Record<string, unknown> | null)?.[field];
  return Array.isArray(list) ? list : null;
}

// From here on the text is known to be JSON: what is looked for is only where things end.

const [quote, comma, colon] = [0x22, 0x2c, 0x3a];
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d];

/** Behind the bracket of the list that is the body's field of this name; null where there is none. */
function findList(bytes: Buffer, field: string): number | null {
  let at = skipSpace(bytes, 0);
  if (bytes[at] !== openBrace) return null;
  for (;;) {
    const key = readKey(bytes, at + 1);
    if (!key) return null;
    if (key.name === field) return bytes[key.value] === openBracket ? key.value + 1 : null;
    at = skipSpace(bytes, skipValue(bytes, key.value));
    if (bytes[at] !== comma) return null;
  }
}

/** From behind a value of the body to its end: is there no field of this name? */
function endsWithout(field: string, bytes: Buffer, from: number): boolean {
  for (let at = skipSpace(bytes, from); bytes[at] === comma; ) {
    const key = readKey(bytes, at + 1);
    if (!key || key.name === field) return false;
    at = skipSpace(bytes, skipValue(bytes, key.value));
  }
  return true;
}

/** From the first item of a list, or its end: null where one of them is no object. */
function readList(bytes: Buffer, from: number): { ends: number[]; close: number } | null {
  const ends: number[] = [];
  let at = from;
  while (bytes[at] === openBrace) {
    const end = skipValue(bytes, at);
    ends.push(end);
    at = skipSpace(bytes, end);
    if (bytes[at] === comma) at = skipSpace(bytes, at + 1);
  }
  return bytes[at] === closeBracket ? { ends, close: at } : null;
}

/** A key and where its value begins. Null for the end of the object, and for a key with an escape in it, which may be any. */
function readKey(bytes: Buffer, from: number): { name: string; value: number } | null {
  const start = skipSpace(bytes, from);
  if (bytes[start] !== quote) return null;
  const end = skipString(bytes, start);
  const name = bytes.toString("utf8", start + 1, end - 1);
  const at = skipSpace(bytes, end);
  return name.includes("\\") || bytes[at] !== colon ? null : { name, value: skipSpace(bytes, at + 1) };
}

function skipValue(bytes: Buffer, from: number): number {
  let at = from;
  for (let depth = 0; at < bytes.length; ) {
    const byte = bytes[at] as number;
    if (byte === quote) at = skipString(bytes, at);
    else if (byte === openBrace || byte === openBracket) {
      depth++;
      at++;
    } else if (byte === closeBrace || byte === closeBracket) {
      // Behind a number or a word, the end of what it stands in.
      if (depth === 0) return at;
      depth--;
      at++;
    } else if (byte === comma && depth === 0) return at;
    else {
      at++;
      continue;
    }
    if (depth === 0) return at;
  }
  return at;
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at++;
  return at;
}
