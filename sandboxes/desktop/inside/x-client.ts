/**
 * Speaks the X protocol with the screen's server over one connection: so an action needs no process of its own. Only the
 * requests that a desktop needs are here. https://www.x.org/releases/X11R7.7/doc/xproto/x11protocol.html
 */
import { connect, type Socket } from "node:net";

const opcodes = {
  internAtom: 16,
  getProperty: 20,
  getInputFocus: 43,
  queryExtension: 98,
  changeKeyboardMapping: 100,
  getKeyboardMapping: 101,
};

/** Events of XTEST: keys and buttons go down and up, the pointer moves. */
export const fake = { keyDown: 2, keyUp: 3, buttonDown: 4, buttonUp: 5, motion: 6 } as const;
export type FakeEvent = (typeof fake)[keyof typeof fake];

/** Bytes of a reply without its own rest, of an error and of an event. */
const packetBytes = 32;
/** A property of a window: a list of windows or a title. */
const propertyWords = 1024;

export class XClient {
  readonly #socket: Socket;
  readonly #waiting: PromiseWithResolvers<Buffer>[] = [];
  #pending = Buffer.alloc(0);
  #fakes = 0;
  root = 0;
  keycodes = { first: 8, last: 255 };

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** `path`: the server's socket. Rejects while nothing listens there. */
  static async connect(path: string): Promise<XClient> {
    const socket = connect(path);
    const client = new XClient(socket);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    void client.#follow(resolve).then(
      () => client.#fail(new Error("the screen has ended")),
      (error: Error) => {
        reject(error);
        client.#fail(error);
      },
    );
    const hello = Buffer.alloc(12);
    hello.write("l", 0);
    hello.writeUInt16LE(11, 2);
    socket.write(hello);
    await promise;
    const answer = await client.#ask(named(opcodes.queryExtension, 0, "XTEST"));
    if (answer[8] !== 1) throw new Error("the screen has no XTEST");
    client.#fakes = answer[9] as number;
    return client;
  }

  /** `detail`: a keycode, or the number of a button. */
  send(event: FakeEvent, detail: number, { x, y } = { x: 0, y: 0 }): void {
    const request = Buffer.alloc(36);
    request.writeUInt8(this.#fakes, 0);
    request.writeUInt8(2, 1);
    request.writeUInt16LE(9, 2);
    request.writeUInt8(event, 4);
    request.writeUInt8(detail, 5);
    request.writeUInt32LE(event === fake.motion ? this.root : 0, 12);
    request.writeInt16LE(x, 24);
    request.writeInt16LE(y, 26);
    this.#socket.write(request);
  }

  /** Resolves when the server has done all that was sent. */
  async flush(): Promise<void> {
    await this.#ask(header(opcodes.getInputFocus, 0, 1));
  }

  /** The keysyms of each keycode from the first one on. */
  async keyboard(): Promise<number[][]> {
    const { first, last } = this.keycodes;
    const request = Buffer.concat([header(opcodes.getKeyboardMapping, 0, 2), Buffer.from([first, last - first + 1, 0, 0])]);
    const answer = await this.#ask(request);
    const width = answer[1] as number;
    const all = Array.from({ length: answer.readUInt32LE(4) }, (_, index) => answer.readUInt32LE(packetBytes + index * 4));
    return Array.from({ length: last - first + 1 }, (_, index) => all.slice(index * width, (index + 1) * width));
  }

  /** Gives a keycode one keysym, with and without shift. */
  setKey(keycode: number, keysym: number): void {
    const request = Buffer.alloc(16);
    header(opcodes.changeKeyboardMapping, 1, 4).copy(request);
    request.writeUInt8(keycode, 4);
    request.writeUInt8(2, 5);
    request.writeUInt32LE(keysym, 8);
    request.writeUInt32LE(keysym, 12);
    this.#socket.write(request);
  }

  /** The windows that the window manager shows. */
  async windows(): Promise<number[]> {
    const atom = (await this.#ask(named(opcodes.internAtom, 0, "_NET_CLIENT_LIST"))).readUInt32LE(8);
    const request = Buffer.alloc(24);
    header(opcodes.getProperty, 0, 6).copy(request);
    request.writeUInt32LE(this.root, 4);
    request.writeUInt32LE(atom, 8);
    request.writeUInt32LE(propertyWords, 20);
    const answer = await this.#ask(request);
    return Array.from({ length: answer.readUInt32LE(16) }, (_, index) => answer.readUInt32LE(packetBytes + index * 4));
  }

  get hasEnded(): boolean {
    return this.#socket.destroyed;
  }

  close(): void {
    this.#socket.destroy();
  }

  #ask(request: Buffer): Promise<Buffer> {
    if (this.#socket.destroyed) return Promise.reject(new Error("the screen has ended"));
    const waiting = Promise.withResolvers<Buffer>();
    this.#waiting.push(waiting);
    this.#socket.write(request);
    return waiting.promise;
  }

  #readGreeting(greeting: Buffer): void {
    const vendorBytes = greeting.readUInt16LE(24);
    const formats = greeting[29] as number;
    this.keycodes = { first: greeting[34] as number, last: greeting[35] as number };
    this.root = greeting.readUInt32LE(40 + Math.ceil(vendorBytes / 4) * 4 + formats * 8);
  }

  /** Rejects if the server refuses the connection, or cannot be reached. */
  async #follow(onGreeted: () => void): Promise<void> {
    let isGreeted = false;
    for await (const piece of this.#socket as AsyncIterable<Buffer>) {
      this.#pending = Buffer.concat([this.#pending, piece]);
      if (!isGreeted) {
        const greeting = this.#pending;
        if (greeting.length < 8 || greeting.length < 8 + greeting.readUInt16LE(6) * 4) continue;
        if (greeting[0] !== 1) throw new Error("the screen refuses the connection");
        this.#readGreeting(greeting);
        this.#pending = Buffer.alloc(0);
        isGreeted = true;
        onGreeted();
      }
      this.#takePackets();
    }
  }

  /** Replies come in the order of the requests. An error belongs to the oldest one, or to one that has no reply; both are faults of ours. */
  #takePackets(): void {
    for (;;) {
      if (this.#pending.length < packetBytes) return;
      const kind = this.#pending[0] as number;
      const length = packetBytes + (kind === 1 || kind === 35 ? this.#pending.readUInt32LE(4) * 4 : 0);
      if (this.#pending.length < length) return;
      const packet = Buffer.from(this.#pending.subarray(0, length));
      this.#pending = this.#pending.subarray(length);
      if (kind === 1) this.#waiting.shift()?.resolve(packet);
      else if (kind === 0) this.#fail(new Error(`the screen refuses a request (error ${packet[1]})`));
    }
  }

  #fail(error: Error): void {
    for (const one of this.#waiting.splice(0)) one.reject(error);
    this.#socket.destroy();
  }
}

/** `words`: the length of the request in units of four bytes. */
function header(opcode: number, data: number, words: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt8(opcode, 0);
  bytes.writeUInt8(data, 1);
  bytes.writeUInt16LE(words, 2);
  return bytes;
}

/** A request that is a name: of an extension, of an atom. */
function named(opcode: number, data: number, name: string): Buffer {
  const words = Math.ceil(name.length / 4);
  const body = Buffer.alloc(4 + words * 4);
  body.writeUInt16LE(name.length, 0);
  body.write(name, 4, "latin1");
  return Buffer.concat([header(opcode, data, 2 + words), body]);
}
