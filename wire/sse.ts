/**
 * Server-sent events: the only place that knows `data:`. Both sides use it, the dialects to write and the engines to
 * read. Follows the WHATWG algorithm ("Interpreting an event stream"), with bounds, because the peer is not trusted.
 */
import { AlidadeError } from "../errors.ts";

/** A frame of a server-sent event stream. `data` is serialised JSON, or a literal such as `[DONE]`. */
export type SseFrame = { event?: string; data: string };

/** The same as it was read: its data are bytes, which cost nothing until somebody wants them as text. */
export type RawSseFrame = { event?: string; data: Buffer };

/** A prompt of a million token ids comes back as one event of about 8 MB; 64 MiB leave room above that. */
const maxEventBytes = 64 * 1024 * 1024;

/** The frame as it stands on the wire, with the empty line that ends it. */
export function encodeSse(frame: SseFrame): string {
  const event = frame.event === undefined ? "" : `event: ${frame.event}\n`;
  const data = frame.data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`);
  return `${event}${data.join("")}\n`;
}

/**
 * Frames of a byte stream, in order. Comments, `id:` and `retry:` are skipped, as is an event without data, and one
 * that the stream broke off before its empty line: half a JSON document is no document.
 * Throws AlidadeError `engine_error` when an event is larger than `limits.maxEventBytes`.
 * Leaving the iteration early closes the source.
 */
export async function* decodeSse(
  chunks: AsyncIterable<Uint8Array>,
  limits: { maxEventBytes?: number } = {},
): AsyncGenerator<SseFrame, void, undefined> {
  const decoder = new SseDecoder(limits);
  for await (const chunk of chunks) for (const frame of decoder.feed(chunk)) yield { ...frame, data: frame.data.toString("utf8") };
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const colon = 0x3a;

/** The same for whoever has the bytes in hand: frames of a read, without a wait for each. */
export class SseDecoder {
  readonly #lines: LineSplitter;
  readonly #frames: FrameBuilder;

  constructor(limits: { maxEventBytes?: number } = {}) {
    const limit = limits.maxEventBytes ?? maxEventBytes;
    this.#lines = new LineSplitter(limit);
    this.#frames = new FrameBuilder(limit);
  }

  *feed(...chunks: Uint8Array[]): Generator<RawSseFrame> {
    for (const chunk of chunks)
      for (const line of this.#lines.feed(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))) {
        const frame = this.#frames.feed(line);
        if (frame !== null) yield frame;
      }
  }
}

/** Cuts bytes at CRLF, LF or CR, wherever the chunks were cut. */
class LineSplitter {
  readonly #limit: number;
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #afterCarriageReturn = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  *feed(chunk: Buffer): Generator<Buffer> {
    if (chunk.length === 0) return;
    let start = this.#afterCarriageReturn && chunk[0] === lineFeed ? 1 : 0;
    this.#afterCarriageReturn = chunk.at(-1) === carriageReturn;
    // Nearly every server ends its lines with LF alone.
    const next = chunk.includes(carriageReturn) ? nextLineEnd : nextLineFeed;
    for (let end = next(chunk, start); end !== -1; end = next(chunk, start)) {
      yield this.#finish(chunk.subarray(start, end));
      start = end + (chunk[end] === carriageReturn && chunk[end + 1] === lineFeed ? 2 : 1);
    }
    if (start < chunk.length) this.#pending.push(chunk.subarray(start));
    this.#pendingBytes += chunk.length - start;
    // Last, so that the whole lines before one that is too long are read first.
    if (this.#pendingBytes > this.#limit) throw tooLarge(this.#limit);
  }

  #finish(rest: Buffer): Buffer {
    if (this.#pending.length === 0) return rest;
    const line = Buffer.concat([...this.#pending, rest]);
    this.#pending = [];
    this.#pendingBytes = 0;
    return line;
  }
}

function nextLineFeed(bytes: Buffer, from: number): number {
  return bytes.indexOf(lineFeed, from);
}

function nextLineEnd(bytes: Buffer, from: number): number {
  for (let at = from; at < bytes.length; at++) if (bytes[at] === lineFeed || bytes[at] === carriageReturn) return at;
  return -1;
}

/** Gathers the lines of one frame; the empty line gives it out. */
class FrameBuilder {
  readonly #limit: number;
  #event = "";
  #data: Buffer[] = [];
  #bytes = 0;
  #isFirst = true;

  constructor(limit: number) {
    this.#limit = limit;
  }

  feed(sent: Buffer): RawSseFrame | null {
    const line = this.#isFirst ? withoutByteOrderMark(sent) : sent;
    this.#isFirst = false;
    if (line.length === 0) return this.#finish();
    const end = line.indexOf(colon);
    const field = line.toString("latin1", 0, end === -1 ? line.length : end);
    const value = end === -1 ? empty : line.subarray(line[end + 1] === space ? end + 2 : end + 1);
    if (field === "event") this.#event = value.toString("utf8");
    else if (field === "data") this.#add(value);
    return null;
  }

  #add(value: Buffer): void {
    this.#data.push(value);
    // One more for the newline between lines, so that endless empty `data:` lines are bounded too.
    this.#bytes += value.length + 1;
    if (this.#bytes > this.#limit) throw tooLarge(this.#limit);
  }

  #finish(): RawSseFrame | null {
    const data = this.#data.length < 2 ? this.#data[0] : joinedByNewlines(this.#data);
    const frame = data && { ...(this.#event !== "" && { event: this.#event }), data };
    this.#event = "";
    this.#data = [];
    this.#bytes = 0;
    return frame ?? null;
  }
}

const empty = Buffer.alloc(0);

function joinedByNewlines(lines: Buffer[]): Buffer {
  return Buffer.concat(lines.flatMap((line, index) => (index === 0 ? [line] : [Buffer.of(lineFeed), line])));
}

function withoutByteOrderMark(line: Buffer): Buffer {
  return line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? line.subarray(3) : line;
}

function tooLarge(limit: number): AlidadeError {
  return new AlidadeError("engine_error", `An event of the server's stream is larger than ${limit} bytes; the stream was given up.`);
}
