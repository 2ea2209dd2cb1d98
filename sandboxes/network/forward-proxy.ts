/**
 * The network of a sandbox: a forward proxy that speaks CONNECT and plain HTTP with absolute addresses, for connections
 * that came through a door. A task names hosts; the proxy resolves them itself, looks at every address and connects to the
 * one that it looked at. A tunnel carries TLS for the server of its name, or plain HTTP, which is read like any other
 * request; nothing else. A redirect is an answer: where it leads is a new request.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Pace } from "../../base/host/pace.ts";
import type { NetworkAccess, NetworkPhase, NetworkRefusal } from "../../base/schema/network.ts";
import { type Destination, destinationOf, hostName, refusalOf } from "./allowed-names.ts";
import { maxHelloBytes, readClientHello, tlsHandshake } from "./client-hello.ts";
import { askedOf, forwardRequest } from "./forward-request.ts";
import { idleMs, type Meter, metered } from "./metered.ts";
import type { NetworkLog } from "./network-log.ts";
import { RefusedConnection, shownAuthority } from "./refused-connection.ts";
import { openUpstream, type Reach } from "./upstream.ts";

export type ForwardBounds = {
  /** Open at once. */
  connections: number;
  /** Both ways, of all that the log has counted. */
  bytes: number;
  /** For the head of a request or the TLS handshake to arrive. */
  head_ms: number;
  /** Without a byte in either direction. */
  idle_ms: number;
};

/** npm opens up to 50 connections at once, Chromium 32 through a proxy. */
export const forwardBounds: ForwardBounds = { connections: 64, bytes: 4 * 1024 ** 3, head_ms: 15_000, idle_ms: idleMs };

/** A connection takes a millisecond of the thread that serves all rollouts; a package manager opens a dozen a second. */
const openingsPerSecond = 64;
/** What is larger than this is no header that servers take. */
const maxHeaderBytes = 16 * 1024;
/** A client that does not read its refusal in this time does not want it. */
const lastWordMs = 2_000;
/** Alert `unrecognized_name`, fatal: a TLS client says so in its error. */
const unrecognizedName = Buffer.from([0x15, 3, 3, 0, 2, 2, 112]);

export type ForwardOptions = Reach & {
  access: NetworkAccess;
  phase: NetworkPhase;
  log: NetworkLog;
  bounds?: Partial<ForwardBounds>;
};

/** One connection from inside. */
type Connection = {
  /** Fires when it is gone. */
  left: AbortController;
  /** Ends it when the head of a request, or a handshake, is late; null while none is awaited. */
  late: NodeJS.Timeout | null;
  /** Set for a tunnel that turned out to carry plain HTTP: where it leads. */
  within: (Destination & Upstream) | null;
};

type Upstream = { upstream: Socket; meter: Meter };

export class ForwardProxy implements AsyncDisposable {
  readonly #options: ForwardOptions;
  readonly #bounds: ForwardBounds;
  readonly #pace = new Pace(openingsPerSecond, 2 * openingsPerSecond);
  readonly #open = new Map<Duplex, Connection>();
  readonly #server = createServer({ maxHeaderSize: maxHeaderBytes }, (request, response) => void this.#onRequest(request, response));
  #isClosed = false;

  constructor(options: ForwardOptions) {
    this.#options = options;
    this.#bounds = { ...forwardBounds, ...options.bounds };
    // One request a connection: what is sent behind it is not read as another one.
    this.#server.maxRequestsPerSocket = 1;
    this.#server.on("connect", (request, client, head) => void this.#onConnect(request, client, head));
    this.#server.on("clientError", (error, client) => this.#onBadBytes(error, client));
  }

  /** Serves one connection from inside the sandbox. */
  accept(client: Duplex): void {
    client.on("error", () => {}); // its close says it too
    if (this.#isClosed || this.#open.size >= this.#bounds.connections) {
      if (!this.#isClosed) this.#refused(unnamed, "too_many_connections");
      client.destroy();
      return;
    }
    const connection: Connection = { left: new AbortController(), late: null, within: null };
    this.#open.set(client, connection);
    const wait = this.#pace.take(1);
    const turn = wait > 0 ? setTimeout(() => this.#serve(client, connection), wait) : null;
    client.once("close", () => {
      this.#open.delete(client);
      if (turn !== null) clearTimeout(turn);
      arrived(connection);
      connection.left.abort();
    });
    if (turn === null) this.#serve(client, connection);
  }

  /** Ends every connection: what was open is cut. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const client of this.#open.keys()) client.destroy();
  }

  #serve(client: Duplex, connection: Connection): void {
    if (client.readableEnded) {
      client.destroy();
      return;
    }
    this.#hurry(client, connection);
    this.#server.emit("connection", client as Socket);
    client.resume();
  }

  #hurry(client: Duplex, connection: Connection): void {
    connection.late = setTimeout(() => {
      this.#refused(connection.within ?? unnamed, "too_slow");
      client.destroy();
    }, this.#bounds.head_ms);
  }

  async #onRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", () => {}); // its client has left
    const connection = this.#open.get(request.socket);
    if (connection === undefined || !arrived(connection)) return;
    response.shouldKeepAlive = false;
    let asked = connection.within ?? shownAuthority(request.url?.replace(/^[a-z]+:\/\/([^/?#]*).*$/i, "$1") ?? "");
    try {
      const destination = askedOf(request, connection.within);
      asked = destination;
      const { upstream, meter } = connection.within ?? (await this.#connect(destination, connection.left.signal));
      await forwardRequest(request, response, { path: destination.path, upstream, meter });
    } catch (error) {
      const { status, message } = this.#noted(asked, error, connection);
      if (response.headersSent) response.destroy();
      else response.writeHead(status, { "content-type": "text/plain", connection: "close" }).end(message);
    }
  }

  async #onConnect({ url = "" }: IncomingMessage, client: Duplex, head: Buffer): Promise<void> {
    const connection = this.#open.get(client);
    if (connection === undefined || !arrived(connection)) return;
    let isOpen = false;
    try {
      const destination = connection.within === null ? destinationOf(url) : null;
      if (destination === null) throw new RefusedConnection("not_a_name");
      const { upstream, meter } = await this.#connect(destination, connection.left.signal);
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      isOpen = true;
      await this.#carry({ client, connection, head, upstream, meter, destination });
    } catch (error) {
      const { status, message } = this.#noted(shownAuthority(url), error, connection);
      sayAndClose(client, isOpen ? unrecognizedName : answerOf(status, message));
    }
  }

  /** TLS goes on as it came, when its first message names the tunnel's own server; what is no TLS is read as HTTP. */
  async #carry({ client, connection, head, upstream, meter, destination }: Tunnel): Promise<void> {
    this.#hurry(client, connection);
    const first = await readUntil(client, head, (bytes) => (bytes.length > 0 ? bytes : null));
    if (first.bytes[0] !== tlsHandshake) {
      arrived(connection);
      connection.within = { ...destination, upstream, meter };
      client.unshift(first.bytes);
      this.#serve(client, connection);
      return;
    }
    const { bytes, value: hello } = await readUntil(client, first.bytes, readClientHello);
    arrived(connection);
    if (hostName(hello.name ?? "") !== destination.host) throw new RefusedConnection("server_name_differs");
    if (hello.encrypted && this.#options.access !== "public") throw new RefusedConnection("server_name_hidden");
    upstream.write(bytes);
    await Promise.all([pipeline(client, meter.stage(), upstream), pipeline(upstream, meter.stage(), client)]);
    client.destroy();
  }

  async #connect(destination: Destination, left: AbortSignal): Promise<Upstream> {
    const { access, phase, log } = this.#options;
    const refusal = refusalOf(destination, access);
    if (refusal !== null) throw new RefusedConnection(refusal);
    if (log.bytes >= this.#bounds.bytes) throw new RefusedConnection("bytes_spent");
    const upstream = await openUpstream(destination, this.#options, left);
    left.addEventListener("abort", () => upstream.destroy());
    const count = log.opened(phase, destination);
    const within = (sent: number, received: number): boolean => {
      count(sent, received);
      return log.bytes < this.#bounds.bytes;
    };
    return { upstream, meter: metered(upstream, within, this.#bounds.idle_ms) };
  }

  /** What fails because the client left is no refusal. */
  #noted(asked: AskedAuthority, error: unknown, { left }: Connection): RefusedConnection {
    const refusal = error instanceof RefusedConnection ? error : new RefusedConnection("connect_failed");
    if (!left.signal.aborted || refusal === error) this.#refused(asked, refusal.reason);
    return refusal;
  }

  #refused({ host, port }: AskedAuthority, reason: NetworkRefusal): void {
    this.#options.log.refused(this.#options.phase, { host, port }, reason);
  }

  #onBadBytes(error: Error, client: Duplex): void {
    const connection = this.#open.get(client);
    const isParsing = "code" in error && String(error.code).startsWith("HPE_");
    if (connection === undefined || !isParsing) {
      client.destroy();
      return;
    }
    const isHead = arrived(connection);
    this.#refused(connection.within ?? unnamed, "not_understood");
    if (isHead) sayAndClose(client, answerOf(400, new RefusedConnection("not_understood").message));
    else client.destroy();
  }
}

type AskedAuthority = { host: string | null; port: number | null };
const unnamed: AskedAuthority = { host: null, port: null };

type Tunnel = Upstream & { client: Duplex; connection: Connection; head: Buffer; destination: Destination };

/** False where nothing was awaited any more. */
function arrived(connection: Connection): boolean {
  if (connection.late === null) return false;
  clearTimeout(connection.late);
  connection.late = null;
  return true;
}

function answerOf(status: number, message: string): string {
  return `HTTP/1.1 ${status} Refused\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n${message}`;
}

/** What the client still sends is not read. */
function sayAndClose(client: Duplex, text: string | Buffer): void {
  const timer = setTimeout(() => client.destroy(), lastWordMs);
  client.once("close", () => clearTimeout(timer));
  client.end(text, () => client.destroy());
}

/** Reads until `parse` gives something. Throws `RefusedConnection` when it throws, or when the bytes are too many or end before. */
function readUntil<Value>(client: Duplex, head: Buffer, parse: (bytes: Buffer) => Value | null): Promise<{ bytes: Buffer; value: Value }> {
  return new Promise((resolve, reject) => {
    let bytes = head;
    const done = (settle: () => void): boolean => {
      client.pause().off("data", onData).off("end", onEnd).off("close", onEnd);
      settle();
      return true;
    };
    const onEnd = (): boolean => done(() => reject(new RefusedConnection("not_understood")));
    const look = (): boolean => {
      try {
        const value = parse(bytes);
        if (value !== null) return done(() => resolve({ bytes, value }));
        return bytes.length > maxHelloBytes && onEnd();
      } catch {
        return onEnd();
      }
    };
    const onData = (chunk: Buffer): void => {
      bytes = Buffer.concat([bytes, chunk]);
      look();
    };
    if (look()) return;
    if (client.readableEnded || client.destroyed) onEnd();
    else client.on("data", onData).once("end", onEnd).once("close", onEnd).resume();
  });
}
