/** Speaks with a command in a service. Each line of its standard input and output is one message. */
import type { Duplex } from "node:stream";
import { messageOf } from "../../base/errors.ts";
import { answerToService, readMessage } from "./mcp.ts";
import type { ServiceLink } from "./service-link.ts";
import { ToolFault, tooLarge } from "./tool-fault.ts";

const lineFeed = 0x0a;

/** Allows for the `id` and the few other fields beside the result. */
const besideBytes = 64 * 1024;

/** Equals 16 requests of the largest size, as many as a session may send at once. Memory holds what a command does not read. */
const mostUnreadBytes = 16 * 1024 * 1024;

export class StdioLink implements ServiceLink {
  readonly #stream: Duplex;
  readonly #mostBytes: number;
  readonly #waiting = new Map<string, PromiseWithResolvers<string>>();
  #ended: ToolFault | null = null;
  /** The beginning of a line whose end has not come yet. */
  #pending: Buffer[] = [];
  #pendingBytes = 0;

  constructor(stream: Duplex, mostBytes: number) {
    this.#stream = stream;
    this.#mostBytes = mostBytes;
    stream.on("error", () => undefined); // the end of the stream reports it too
    void this.#follow();
  }

  speaks(): void {}

  async ask(id: number, message: string, signal: AbortSignal): Promise<string> {
    if (this.#ended) throw this.#ended;
    const waiting = Promise.withResolvers<string>();
    const stop = (): void => waiting.reject(signal.reason);
    this.#waiting.set(String(id), waiting);
    signal.addEventListener("abort", stop, { once: true });
    try {
      this.#write(message);
      return await waiting.promise;
    } finally {
      signal.removeEventListener("abort", stop);
      this.#waiting.delete(String(id));
    }
  }

  async tell(message: string): Promise<void> {
    if (this.#ended) throw this.#ended;
    this.#write(message);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end(new ToolFault("cut", "the tools are closed"));
    this.#stream.destroy();
  }

  /** Replaces line ends: in JSON they can stand only between values. */
  #write(message: string): void {
    if (this.#stream.writableLength >= mostUnreadBytes) throw new ToolFault("hung", "its command does not read its input");
    this.#stream.write(`${message.replaceAll(/[\r\n]+/g, " ")}\n`);
  }

  async #follow(): Promise<void> {
    let why = "its command ended";
    try {
      for await (const piece of this.#stream as AsyncIterable<Buffer>) this.#feed(piece);
    } catch (error) {
      why = `its command broke off (${messageOf(error)})`;
    }
    this.#end(new ToolFault("died", why));
  }

  #feed(piece: Buffer): void {
    let start = 0;
    for (let end = piece.indexOf(lineFeed); end !== -1; end = piece.indexOf(lineFeed, start)) {
      this.#keep(piece.subarray(start, end));
      if (!this.#isTooLong) this.#take(Buffer.concat(this.#pending).toString());
      this.#pending = [];
      this.#pendingBytes = 0;
      start = end + 1;
    }
    this.#keep(piece.subarray(start));
  }

  /** Fails all waiting requests if a line is too long. It answers one of them, but its `id` is not known. */
  #keep(piece: Buffer): void {
    const wasTooLong = this.#isTooLong;
    this.#pendingBytes += piece.length;
    if (!this.#isTooLong) this.#pending.push(piece);
    else if (!wasTooLong) {
      this.#pending = [];
      this.#rejectAll(tooLarge(this.#mostBytes));
    }
  }

  get #isTooLong(): boolean {
    return this.#pendingBytes > this.#mostBytes + besideBytes;
  }

  /** Ignores a line that is not a message: the command wrote a log line. */
  #take(line: string): void {
    const read = readMessage(line);
    if (read === null) return;
    const reply = answerToService(read);
    if (reply !== null) this.#write(reply);
    else if (read.id !== undefined) this.#waiting.get(read.id)?.resolve(line);
  }

  #end(fault: ToolFault): void {
    this.#ended ??= fault;
    this.#rejectAll(fault);
  }

  #rejectAll(fault: ToolFault): void {
    for (const one of this.#waiting.values()) one.reject(fault);
  }
}
