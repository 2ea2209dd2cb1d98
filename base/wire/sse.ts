/**
 * Server-sent events: the only place that knows `data:`. Both sides use it, the dialects to write and the engines to
 * read. Follows the WHATWG algorithm ("Interpreting an event stream"), with bounds, because the peer is not trusted.
 */
import { AlidadeError } from "../errors.ts";
import { withJoined } from "./joined.ts";

/** A frame of a server-sent event stream. `data` is serialised JSON, or a literal such as `[DONE]`; `id` is one line, and not read. */
export type SseFrame = { event?: string; data: string; id?: string };

/**
 * A frame while it is read: its data are the bytes from `start` to before `end`. They become text on demand, and are
 * invalid after this returns.
 */
export type TakeFrame = (bytes: Buffer, start: number, end: number, event: string) => void;

/** A prompt of a million token ids comes back as one event of about 8 MB; 64 MiB leave room above that. */
const maxEventBytes = 64 * 1024 * 1024;

const lineEnds = /\r\n|\r|\n/;

/** NEL, LINE SEPARATOR and PARAGRAPH SEPARATOR: line ends of Unicode, and none of JSON's or an event stream's. */
const unicodeLineEnds = /[\u0085\u2028\u2029]/g;

/** The frame as it stands on the wire, with the empty line that ends it. */
export function encodeSse(frame: SseFrame): string {
  const id = frame.id === undefined ? "" : `id: ${frame.id}\n`;
  const event = `${id}${frame.event === undefined ? "" : `event: ${frame.event}\n`}`;
  const text = onOneLine(frame.data);
  // JSON has no line ends, and nearly all that is sent is JSON.
  if (!text.includes("\n") && !text.includes("\r")) return `${event}data: ${text}\n\n`;
  const data = text.split(lineEnds).map((line) => `data: ${line}\n`);
  return `${event}${data.join("")}\n`;
}

/** Says nothing: every reader skips it. */
export const sseComment = ":\n\n";

/**
 * The same JSON without characters that other readers take for a line end. Python's `splitlines` (and so httpx and what is
 * built on it) does: such a character in sampled text cuts the event in two, and some readers skip both halves silently.
 */
export function onOneLine(json: string): string {
  // The characters can stand only within strings, where the escape says the same.
  return json.search(unicodeLineEnds) === -1 ? json : json.replace(unicodeLineEnds, toEscape);
}

function toEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const colon = 0x3a;
const eventField = Buffer.from("event");
const dataField = Buffer.from("data");

/**
 * Frames of the bytes at hand, in order. Comments, `id:` and `retry:` are skipped, as is an event without data, and one
 * that the stream broke off before its empty line: half a JSON document is no document. A model server sends one event
 * per token, so only the data are taken out: no waits, no generator, no object per line.
 */
export class SseDecoder {
  readonly #limit: number;
  /** The beginning of a line that is not complete yet. */
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #afterCarriageReturn = false;
  #isFirstLine = true;
  /** Nothing of a next frame was seen yet, and no white space before it can mean anything. */
  #isBetweenFrames = false;
  /** The lines of the frame so far. */
  #event = "";
  #data: Buffer[] = [];
  #dataBytes = 0;

  constructor(limits: { maxEventBytes?: number } = {}) {
    this.#limit = limits.maxEventBytes ?? maxEventBytes;
  }

  /** Hands over the frames that these bytes complete; those before a fault too. */
  feed(bytes: Uint8Array, take: TakeFrame): void {
    if (bytes.length === 0) return;
    const chunk = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    if (this.#isBetweenFrames && isOneFrame(chunk) && chunk.length < this.#limit)
      take(chunk, chunk[dataField.length + 1] === space ? dataField.length + 2 : dataField.length + 1, chunk.length - 2, "");
    else this.#feedLines(chunk, take);
  }

  #feedLines(chunk: Buffer, take: TakeFrame): void {
    let start = this.#afterCarriageReturn && chunk[0] === lineFeed ? 1 : 0;
    this.#afterCarriageReturn = chunk[chunk.length - 1] === carriageReturn;
    // Nearly every server ends its lines with LF alone.
    const next = chunk.includes(carriageReturn) ? nextLineEnd : nextLineFeed;
    for (let end = next(chunk, start); end !== -1; end = next(chunk, start)) {
      this.#endLine(chunk, start, end, take);
      start = end + (chunk[end] === carriageReturn && chunk[end + 1] === lineFeed ? 2 : 1);
    }
    if (start < chunk.length) this.#pending.push(chunk.subarray(start));
    this.#pendingBytes += chunk.length - start;
    // Last, so that the whole lines before one that is too long are read first.
    if (this.#pendingBytes > this.#limit) throw tooLarge(this.#limit);
    this.#isBetweenFrames =
      this.#pendingBytes === 0 && this.#data.length === 0 && this.#event === "" && !this.#afterCarriageReturn && !this.#isFirstLine;
  }

  #endLine(chunk: Buffer, start: number, end: number, take: TakeFrame): void {
    if (this.#pending.length === 0) return void this.#takeLine(chunk, start, end, take);
    const pieces = [...this.#pending, chunk.subarray(start, end)];
    this.#pending = [];
    this.#pendingBytes = 0;
    // The empty line that ends the frame is nearly always there too; then the line need not be kept.
    const isWhole = this.#data.length === 0 && chunk[end] === lineFeed && chunk[end + 1] === lineFeed;
    if (!isWhole) {
      const line = Buffer.concat(pieces);
      this.#takeLine(line, 0, line.length, take);
    } else
      withJoined(pieces, (line) => {
        this.#takeLine(line, 0, line.length, take);
        this.#endFrame(take);
      });
  }

  #takeLine(bytes: Buffer, from: number, end: number, take: TakeFrame): void {
    const start = this.#isFirstLine ? afterByteOrderMark(bytes, from, end) : from;
    this.#isFirstLine = false;
    if (start === end) this.#endFrame(take);
    else if (isField(dataField, bytes, start, end)) this.#addData(fieldValue(dataField, bytes, start, end));
    else if (isField(eventField, bytes, start, end)) this.#event = fieldValue(eventField, bytes, start, end).toString("utf8");
  }

  #addData(value: Buffer): void {
    this.#data.push(value);
    // One more for the newline between lines, so that endless empty `data:` lines are bounded too.
    this.#dataBytes += value.length + 1;
    if (this.#dataBytes > this.#limit) throw tooLarge(this.#limit);
  }

  #endFrame(take: TakeFrame): void {
    const event = this.#event;
    this.#event = "";
    const [data] = this.#data.length < 2 ? this.#data : [joinedByNewlines(this.#data)];
    if (data === undefined) return;
    this.#data = [];
    this.#dataBytes = 0;
    take(data, 0, data.length, event);
  }
}

/** What a server sends for a token when it is sent alone: one line of data and an empty one. */
function isOneFrame(chunk: Buffer): boolean {
  return (
    isField(dataField, chunk, 0, chunk.length) &&
    chunk.indexOf(lineFeed) === chunk.length - 2 &&
    chunk[chunk.length - 1] === lineFeed &&
    !chunk.includes(carriageReturn)
  );
}

/** The line is this field's: its name alone, or its name and a colon. */
function isField(name: Buffer, bytes: Buffer, start: number, end: number): boolean {
  const nameEnd = start + name.length;
  if (nameEnd > end || (nameEnd < end && bytes[nameEnd] !== colon)) return false;
  for (let at = 0; at < name.length; at++) if (bytes[start + at] !== name[at]) return false;
  return true;
}

/** What stands behind the colon, without the one space that may be there. */
function fieldValue(name: Buffer, bytes: Buffer, start: number, end: number): Buffer {
  const value = Math.min(start + name.length + 1, end);
  return bytes.subarray(bytes[value] === space && value < end ? value + 1 : value, end);
}

function nextLineFeed(bytes: Buffer, from: number): number {
  return bytes.indexOf(lineFeed, from);
}

function nextLineEnd(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) if (bytes[at] === lineFeed || bytes[at] === carriageReturn) return at;
  return -1;
}

function joinedByNewlines(lines: Buffer[]): Buffer {
  return Buffer.concat(lines.flatMap((line, index) => (index === 0 ? [line] : [Buffer.of(lineFeed), line])));
}

function afterByteOrderMark(bytes: Buffer, start: number, end: number): number {
  return end - start >= 3 && bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf ? start + 3 : start;
}

function tooLarge(limit: number): AlidadeError {
  return new AlidadeError("engine_error", `An event of the server's stream is larger than ${limit} bytes; the stream was given up.`);
}
