/** The first message of a TLS client (RFC 8446, 4.1.2): read to see which server it names, and sent on as it came. */

/** Large with post-quantum keys, at about 2 KiB. What is longer than this is no client that we know. */
export const maxHelloBytes = 16 * 1024;

export const tlsHandshake = 0x16;
const clientHello = 1;
const extensions = { server_name: 0, encrypted_client_hello: 0xfe0d } as const;

/** `name`: as it stands there; null where none does. `encrypted`: a part of it, with perhaps another name, cannot be read. */
export type ClientHello = { name: string | null; encrypted: boolean };

/** null: more bytes are needed. Throws for what is no such message, or one that servers could read in two ways. */
export function readClientHello(bytes: Buffer): ClientHello | null {
  const message = handshakeOf(bytes);
  if (message === null) return null;
  const reader = new HelloReader(message);
  reader.take(4 + 2 + 32); // type and length, version, random
  reader.block(1); // session id
  reader.block(2); // cipher suites
  reader.block(1); // compression
  const found = reader.isAtEnd ? new Map<number, Buffer>() : extensionsOf(reader.block(2));
  if (!reader.isAtEnd) throw new Error("bytes follow the message");
  const names = found.get(extensions.server_name);
  return { name: names === undefined ? null : nameOf(names), encrypted: found.has(extensions.encrypted_client_hello) };
}

/** The whole handshake message, which may be split over several records; null where its end has not come. */
function handshakeOf(bytes: Buffer): Buffer | null {
  const parts: Buffer[] = [];
  let length = 0;
  for (let at = 0; at + 5 <= bytes.length; ) {
    const size = bytes.readUInt16BE(at + 3);
    if (bytes[at] !== tlsHandshake || bytes[at + 1] !== 3 || size === 0 || size > maxHelloBytes) throw new Error("no TLS handshake");
    parts.push(bytes.subarray(at + 5, Math.min(at + 5 + size, bytes.length)));
    length += parts.at(-1)?.length ?? 0;
    at += 5 + size;
    const message = length >= 4 ? Buffer.concat(parts) : null;
    if (message === null) continue;
    const whole = 4 + message.readUIntBE(1, 3);
    if (message[0] !== clientHello || whole > maxHelloBytes) throw new Error("the handshake does not begin with a ClientHello");
    if (message.length > whole) throw new Error("bytes follow the ClientHello in its record");
    if (message.length === whole) return message;
  }
  return null;
}

function extensionsOf(block: Buffer): Map<number, Buffer> {
  const reader = new HelloReader(block);
  const found = new Map<number, Buffer>();
  while (!reader.isAtEnd) {
    const type = reader.take(2).readUInt16BE();
    if (found.has(type)) throw new Error("an extension stands there twice");
    found.set(type, reader.block(2));
  }
  return found;
}

/** The one name of the list (RFC 6066, 3). */
function nameOf(extension: Buffer): string {
  const reader = new HelloReader(extension);
  const list = new HelloReader(reader.block(2));
  const type = list.take(1)[0];
  const name = list.block(2).toString("latin1");
  if (type !== 0 || !list.isAtEnd || !reader.isAtEnd) throw new Error("the list of server names has another form than one name");
  return name;
}

class HelloReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  take(count: number): Buffer {
    const end = this.#at + count;
    if (end > this.#bytes.length) throw new Error("the message ends too early");
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }

  /** What stands behind its own length, a number of so many bytes. */
  block(lengthBytes: 1 | 2): Buffer {
    return this.take(this.take(lengthBytes).readUIntBE(0, lengthBytes));
  }
}
