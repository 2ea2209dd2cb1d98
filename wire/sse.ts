/**
 * Server-sent events: the only place that knows `data:`. Both sides use it, the dialects to write and the engines to
 * read. Follows the WHATWG algorithm ("Interpreting an event stream"), with bounds, because the peer is not trusted.
 */
import { AlidadeError } from "../errors.ts";

/** A frame of a server-sent event stream. `data` is serialised JSON, or a literal such as `[DONE]`. */
export type SseFrame = { event?: string; data: string };

/** A prompt of a million token ids comes back as one event of about 8 MB; 64 Mi characters leaves room above that. */
const maxEventLength = 64 * 1024 * 1024;

/** The frame as it stands on the wire, with the empty line that ends it. */
export function encodeSse(frame: SseFrame): string {
  const event = frame.event === undefined ? "" : `event: ${frame.event}\n`;
  const data = frame.data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`);
  return `${event}${data.join("")}\n`;
}

/**
 * Frames of a byte stream, in order. Comments, `id:` and `retry:` are skipped, as is an event without data, and one
 * that the stream broke off before its empty line: half a JSON document is no document.
 * Throws AlidadeError `engine_error` when an event is larger than `limits.maxEventLength` characters.
 * Leaving the iteration early closes the source.
 */
export async function* decodeSse(
  chunks: AsyncIterable<Uint8Array>,
  limits: { maxEventLength?: number } = {},
): AsyncGenerator<SseFrame, void, undefined> {
  const decoder = new SseDecoder(limits);
  for await (const chunk of chunks) yield* decoder.feed(chunk);
}

/** The same for whoever has the bytes in hand: frames of a read, without a wait for each. */
export class SseDecoder {
  readonly #decoder = new TextDecoder();
  readonly #lines: LineSplitter;
  readonly #frames: FrameBuilder;

  constructor(limits: { maxEventLength?: number } = {}) {
    const limit = limits.maxEventLength ?? maxEventLength;
    this.#lines = new LineSplitter(limit);
    this.#frames = new FrameBuilder(limit);
  }

  *feed(chunk: Uint8Array): Generator<SseFrame> {
    for (const line of this.#lines.feed(this.#decoder.decode(chunk, { stream: true }))) {
      const frame = this.#frames.feed(line);
      if (frame !== null) yield frame;
    }
    this.#lines.assertBounded();
  }
}

/** Cuts text at CRLF, LF or CR, wherever the chunks were cut. */
class LineSplitter {
  readonly #limit: number;
  #pending = "";
  #afterCarriageReturn = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  feed(text: string): string[] {
    if (text === "") return [];
    const fresh = this.#afterCarriageReturn && text.startsWith("\n") ? text.slice(1) : text;
    this.#afterCarriageReturn = text.endsWith("\r");
    // Nearly every server ends its lines with LF alone, and cutting at a string is many times faster than at a pattern.
    const lines = fresh.split(fresh.includes("\r") ? /\r\n|\n|\r/ : "\n");
    lines[0] = this.#pending + lines[0];
    this.#pending = lines.pop() as string;
    return lines;
  }

  /** Apart from `feed`, so that the whole lines before one that is too long are read first. */
  assertBounded(): void {
    if (this.#pending.length > this.#limit) throw tooLarge(this.#limit);
  }
}

/** Gathers the lines of one frame; the empty line gives it out. */
class FrameBuilder {
  readonly #limit: number;
  #event = "";
  #data: string[] = [];
  #length = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  feed(line: string): SseFrame | null {
    if (line === "") return this.#finish();
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "event") this.#event = value;
    else if (field === "data") this.#add(value);
    return null;
  }

  #add(value: string): void {
    this.#data.push(value);
    // One more for the newline between lines, so that endless empty `data:` lines are bounded too.
    this.#length += value.length + 1;
    if (this.#length > this.#limit) throw tooLarge(this.#limit);
  }

  #finish(): SseFrame | null {
    const frame = this.#data.length === 0 ? null : { ...(this.#event !== "" && { event: this.#event }), data: this.#data.join("\n") };
    this.#event = "";
    this.#data = [];
    this.#length = 0;
    return frame;
  }
}

function tooLarge(limit: number): AlidadeError {
  return new AlidadeError("engine_error", `An event of the server's stream is larger than ${limit} characters; the stream was given up.`);
}
