/**
 * Many connections over one byte stream, for a door whose only way out of the sandbox is the standard input and output of
 * one attached process. Both ends run this file: the host, and the forwarder inside (so it imports nothing but Node).
 *
 * A frame is `u32 stream, u8 type, u32 length, payload`, big-endian. Flow control is one window per stream and direction:
 * an end sends at most `windowBytes` that the other has not passed on to its reader. So memory is bounded, the transport is
 * always drained, and a slow reader does not block the other streams.
 *
 * `node:http2` over the same two pipes carries as many streams, but it is no smaller and no safer. By default 400 connections
 * exceed its memory, which ends every stream of the session. A reset by the host (`CANCEL`) arrives as a normal end. It takes
 * 1.2 to 1.5 times the CPU. An HTTP server still needs the socket's methods below, and the sandbox could talk to a larger parser.
 */
import { Duplex, type Writable } from "node:stream";
import { setTimeout as startTimer, clearTimeout as stopTimer } from "node:timers";

const headerBytes = 9;
const frames = { open: 1, data: 2, end: 3, reset: 4, window: 5, ready: 6 } as const;

/** 128 KiB: over a link of about 1 ms round trip it allows 100 MB/s, more than an attached exec stream carries. */
export const windowBytes = 128 * 1024;
/** Small enough that hundreds of streams take fair turns, large enough that headers cost nothing. */
const maxFrameBytes = 16 * 1024;
/** With the window it bounds what one sandbox can make the host hold: 64 MiB each way. A door of another kind takes as many. */
export const maxStreams = 512;

export type MultiplexerEvents = {
  /** The other end opened a stream. `port`: where it is to lead; 0 where that end does not say. */
  onStream?: (stream: MultiplexedStream, port: number) => void;
  /** The other end reported that it is ready. */
  onReady?: () => void;
};

export class Multiplexer {
  readonly #transport: Writable;
  readonly #events: MultiplexerEvents;
  readonly #streams = new Map<number, MultiplexedStream>();
  /** Streams with bytes to send and credit to do so, in the order of their turns. */
  readonly #turns = new Set<MultiplexedStream>();
  #blocked = false;
  #closed = false;
  #nextId = 1;
  #rest: Buffer = Buffer.alloc(0);

  constructor(transport: Writable, events: MultiplexerEvents = {}) {
    this.#transport = transport;
    this.#events = events;
    transport.on("drain", () => {
      this.#blocked = false;
      this.#pump();
    });
  }

  get openStreams(): number {
    return this.#streams.size;
  }

  /** A new stream to the other end; null when there are as many as may be. `port`: where the other end is to connect it. */
  open(port = 0): MultiplexedStream | null {
    if (this.#closed || this.#streams.size >= maxStreams) return null;
    const id = this.#nextId;
    this.#nextId = (this.#nextId % 0xffff_ffff) + 1;
    const stream = this.#add(id);
    const place = Buffer.alloc(2);
    place.writeUInt16BE(port);
    this.#send(id, frames.open, place);
    return stream;
  }

  ready(): void {
    this.#send(0, frames.ready);
  }

  /** Bytes that arrived. Throws when they are no frames of ours: the transport is then of no more use. */
  feed(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (bytes.length >= headerBytes) {
      const id = bytes.readUInt32BE(0);
      const type = bytes.readUInt8(4);
      const length = bytes.readUInt32BE(5);
      if (length > maxFrameBytes) throw new Error(`A door frame of ${length} bytes: more than ${maxFrameBytes}`);
      if (bytes.length < headerBytes + length) break;
      this.#receive(id, type, bytes.subarray(headerBytes, headerBytes + length));
      bytes = bytes.subarray(headerBytes + length);
    }
    // Copied, so that a few left-over bytes do not hold a whole chunk.
    this.#rest = Buffer.from(bytes);
  }

  /** The transport is gone: every stream ends with a connection reset. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const stream of [...this.#streams.values()]) stream.destroy(connectionReset());
    this.#turns.clear();
  }

  #receive(id: number, type: number, payload: Buffer): void {
    const stream = this.#streams.get(id);
    if (type === frames.ready && id === 0) this.#events.onReady?.();
    else if (type === frames.open) this.#accept(id, payload.length === 2 ? payload.readUInt16BE(0) : 0);
    else if (type < frames.open || type > frames.ready) throw new Error(`A door frame of unknown type ${type}`);
    else if (stream === undefined)
      return; // reset here, with frames still on their way
    else if (type === frames.data) stream.receiveData(payload);
    else if (type === frames.end) stream.receiveEnd();
    else if (type === frames.reset) stream.receiveReset();
    else if (type === frames.ready) stream.emit("connect");
    else stream.receiveCredit(payload.length === 4 ? payload.readUInt32BE(0) : 0);
  }

  /** A second stream of one id, or one too many, is refused; the other end reads that as a reset. */
  #accept(id: number, port: number): void {
    const refused = this.#streams.has(id) || this.#streams.size >= maxStreams || this.#events.onStream === undefined;
    if (refused) this.#send(id, frames.reset);
    else this.#events.onStream?.(this.#add(id), port);
  }

  #add(id: number): MultiplexedStream {
    const stream = new MultiplexedStream({
      wantsToSend: () => {
        this.#turns.add(stream);
        this.#pump();
      },
      data: (payload) => this.#send(id, frames.data, payload),
      end: () => this.#send(id, frames.end),
      connected: () => this.#send(id, frames.ready),
      reset: () => this.#send(id, frames.reset),
      credit: (bytes) => {
        const payload = Buffer.alloc(4);
        payload.writeUInt32BE(bytes);
        this.#send(id, frames.window, payload);
      },
      remove: () => {
        this.#turns.delete(stream);
        this.#streams.delete(id);
      },
    });
    this.#streams.set(id, stream);
    return stream;
  }

  /** One frame for each stream in turn, as long as the transport takes them. */
  #pump(): void {
    while (!this.#blocked && !this.#closed) {
      const [stream] = this.#turns;
      if (stream === undefined) return;
      this.#turns.delete(stream);
      if (stream.sendFrame(maxFrameBytes)) this.#turns.add(stream);
    }
  }

  #send(id: number, type: number, payload: Buffer | null = null): void {
    if (this.#closed || this.#transport.destroyed || this.#transport.writableEnded) return;
    const length = payload?.length ?? 0;
    const frame = Buffer.allocUnsafe(headerBytes + length);
    frame.writeUInt32BE(id, 0);
    frame.writeUInt8(type, 4);
    frame.writeUInt32BE(length, 5);
    payload?.copy(frame, headerBytes);
    if (!this.#transport.write(frame)) this.#blocked = true;
  }
}

type Link = {
  wantsToSend(): void;
  data(payload: Buffer): void;
  end(): void;
  connected(): void;
  reset(): void;
  credit(bytes: number): void;
  remove(): void;
};

/**
 * One connection. It answers what Node's HTTP server asks of a net.Socket (time-outs, `destroySoon`, `ref`, …); the
 * addresses are undefined, for there are none.
 */
export class MultiplexedStream extends Duplex {
  readonly #link: Link;
  readonly #inbox: (Buffer | null)[] = [];
  #wanted = false;
  #inFlight = 0;
  #consumed = 0;
  #credit = windowBytes;
  #outgoing: { bytes: Buffer; done: (error?: Error | null) => void } | null = null;
  #endReceived = false;
  #endSent = false;
  /** The other end reads no more: further writes are dropped, as on a closed socket. */
  #resetReceived = false;
  #resetting = false;
  #idleMs = 0;
  #idleTimer: NodeJS.Timeout | undefined;

  readonly remoteAddress = undefined;
  readonly remotePort = undefined;
  readonly remoteFamily = undefined;
  readonly localAddress = undefined;
  readonly localPort = undefined;
  readonly connecting = false;
  timeout = 0;

  constructor(link: Link) {
    super({ allowHalfOpen: true, readableHighWaterMark: 64 * 1024, writableHighWaterMark: 64 * 1024 });
    this.#link = link;
    // A reset without a listener must not end the process.
    this.on("error", () => {});
  }

  receiveData(payload: Buffer): void {
    if (this.#endReceived || this.destroyed) return;
    this.#inFlight += payload.length;
    if (this.#inFlight > windowBytes) throw new Error("The other end of the door sent more than its window");
    this.#active();
    this.#inbox.push(Buffer.from(payload));
    this.#deliver();
  }

  receiveEnd(): void {
    if (this.#endReceived || this.destroyed) return;
    this.#endReceived = true;
    this.#inbox.push(null);
    this.#deliver();
  }

  /** After its end a reset only means that the other side reads no more: what it sent is still delivered. */
  receiveReset(): void {
    this.#resetReceived = true;
    if (!this.#endReceived) {
      this.destroy(connectionReset());
      return;
    }
    this.#finishWrite();
    if (this.readableEnded) this.destroy();
    else this.once("end", () => this.destroy());
  }

  receiveCredit(bytes: number): void {
    this.#credit += bytes;
    if (this.#outgoing !== null) this.#link.wantsToSend();
  }

  /** Sends up to `limit` bytes of what waits; true when it could send more. */
  sendFrame(limit: number): boolean {
    const outgoing = this.#outgoing;
    if (outgoing === null || this.destroyed) return false;
    const length = Math.min(limit, this.#credit, outgoing.bytes.length);
    if (length > 0) {
      this.#credit -= length;
      this.#active();
      this.#link.data(outgoing.bytes.subarray(0, length));
      outgoing.bytes = outgoing.bytes.subarray(length);
    }
    if (outgoing.bytes.length === 0) {
      this.#finishWrite();
      return false; // the next write checks again
    }
    return this.#credit > 0;
  }

  override _read(): void {
    this.#wanted = true;
    this.#deliver();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#outgoing = { bytes: chunk, done };
    if (this.#resetReceived) this.#finishWrite();
    else if (this.#credit > 0) this.#link.wantsToSend();
  }

  override _writev(chunks: { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this._write(Buffer.concat(chunks.map(({ chunk }) => chunk)), "utf8", done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#endSent = true;
    this.#link.end();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    stopTimer(this.#idleTimer);
    this.#sayGoodbye();
    this.#link.remove();
    this.#inbox.length = 0;
    this.#finishWrite(error ?? connectionReset());
    done(error);
  }

  /** Closes as TCP does: an end, then a reset where the other side may still be sending; only a reset on request. */
  #sayGoodbye(): void {
    if (this.#resetReceived) return;
    if (!this.#endSent && !this.#resetting) this.#link.end();
    if (!this.#endReceived || this.#resetting) this.#link.reset();
  }

  /** Tells the other end that its stream leads where it asked to: it emits `connect` there. */
  sayConnected(): void {
    this.#link.connected();
  }

  /** The other end sees a connection that was reset, not one that was closed. */
  resetAndDestroy(): this {
    this.#resetting = true;
    return this.destroy();
  }

  /** Sends what was written, then closes: what `net.Socket` does for a response that ends its connection. */
  destroySoon(): void {
    if (!this.writableEnded) this.end();
    if (this.writableFinished) this.destroy();
    else this.once("finish", () => this.destroy());
  }

  /** Emits `timeout` after this long without a byte in either direction; 0 turns it off. */
  setTimeout(milliseconds: number, listener?: () => void): this {
    this.#idleMs = milliseconds;
    this.timeout = milliseconds;
    stopTimer(this.#idleTimer);
    this.#idleTimer = undefined;
    if (milliseconds > 0) {
      this.#idleTimer = startTimer(() => this.emit("timeout"), milliseconds);
      this.#idleTimer.unref();
      if (listener !== undefined) this.once("timeout", listener);
    } else if (listener !== undefined) this.removeListener("timeout", listener);
    return this;
  }

  setNoDelay(): this {
    return this;
  }
  setKeepAlive(): this {
    return this;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  address(): Record<string, never> {
    return {};
  }

  #active(): void {
    if (this.#idleMs > 0) this.#idleTimer?.refresh();
  }

  /** Gives arrived data to the reader on demand, and the same amount of room back to the sender. */
  #deliver(): void {
    while (this.#wanted && this.#inbox.length > 0) {
      const chunk = this.#inbox.shift() as Buffer | null;
      this.#wanted = this.push(chunk);
      if (chunk !== null) this.#consumed += chunk.length;
    }
    // In quarters of a window: fewer frames, and the sender never runs dry.
    if (this.#consumed >= windowBytes / 4 && !this.#endReceived && !this.destroyed) {
      this.#inFlight -= this.#consumed;
      this.#link.credit(this.#consumed);
      this.#consumed = 0;
    }
  }

  #finishWrite(error: Error | null = null): void {
    const outgoing = this.#outgoing;
    this.#outgoing = null;
    outgoing?.done(error);
  }
}

function connectionReset(): Error {
  return Object.assign(new Error("The connection through the sandbox's door was reset"), { code: "ECONNRESET" });
}
