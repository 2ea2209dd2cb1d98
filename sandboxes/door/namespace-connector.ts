/**
 * Connects into the network namespace of a container on this Linux machine; needs root. Our own process in that namespace
 * connects there and hands the sockets over. It joins no other namespace of the container, so nothing inside sees it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";
import { AlidadeError } from "../../base/errors.ts";
import { untilAborted } from "../../base/host/until-aborted.ts";
import { type Connector, connectMs } from "./connector.ts";
import { maxStreams } from "./multiplexer.ts";

/** Does not read the socket: its first bytes belong to the process that receives it. */
const connectAndHandOver = `const net = require("net");
process.on("message", ({ id, port }) => {
  const socket = net.connect({ host: "127.0.0.1", port, noDelay: true, allowHalfOpen: true });
  socket.pause();
  socket.setTimeout(${connectMs}, () => socket.destroy(new Error("no connection within ${connectMs} ms")));
  socket.on("error", (error) => process.send({ id, problem: error.message }));
  socket.once("connect", () => { socket.setTimeout(0); process.send({ id }, socket); });
});
process.on("disconnect", () => process.exit(0));`;

type WaitingReader = { resolve(socket: Socket): void; reject(error: Error): void };
type ConnectorAnswer = { id: number; problem?: string };

export class NamespaceConnector implements Connector {
  readonly #findPid: () => Promise<number | null>;
  readonly #waiting = new Map<number, WaitingReader>();
  readonly #sockets = new Set<Socket>();
  #child: Promise<ChildProcess> | null = null;
  #nextId = 1;
  #closed = false;

  /** `findPid`: returns a pid of the container on this machine. Called each time our own process starts. */
  constructor(findPid: () => Promise<number | null>) {
    this.#findPid = findPid;
  }

  async connect(port: number, signal: AbortSignal): Promise<Socket> {
    signal.throwIfAborted();
    if (this.#closed) throw new AlidadeError("sandbox_died", "The sandbox is gone already.");
    if (this.#sockets.size + this.#waiting.size >= maxStreams) throw new Error(`there are ${maxStreams} connections already`);
    const id = this.#nextId++;
    const { promise, resolve, reject } = Promise.withResolvers<Socket>();
    this.#waiting.set(id, { resolve, reject });
    this.#child ??= this.#start();
    this.#child.then(
      (child) => child.send({ id, port }, (error) => error && this.#take(id)?.reject(error)),
      (error) => this.#take(id)?.reject(error),
    );
    // Destroys a socket that arrives after the abort: it has no reader.
    promise.then((socket) => signal.aborted && socket.destroy()).catch(() => undefined);
    return untilAborted(promise, signal);
  }

  /** Starts our process in the namespace. It keeps Alidade's process alive only while an answer is due. */
  async #start(): Promise<ChildProcess> {
    const pid = await this.#findPid();
    if (pid === null) throw new AlidadeError("sandbox_died", "The container of the sandbox's services is gone.");
    const enter = ["-t", String(pid), "-n", process.execPath, "-e", connectAndHandOver];
    const child = spawn("nsenter", enter, { stdio: ["ignore", "ignore", "ignore", "ipc"], env: { PATH: process.env.PATH } });
    child.on("message", (answer, socket) => this.#receive(answer as ConnectorAnswer, socket as Socket | undefined));
    const ended = (problem: string): void => {
      this.#child = null;
      for (const id of [...this.#waiting.keys()]) this.#take(id)?.reject(new Error(problem));
    };
    child.once("error", (error) => ended(error.message));
    child.once("close", (code, name) => ended(`nsenter ended with ${code ?? name}`));
    child.unref();
    return child;
  }

  #receive({ id, problem }: ConnectorAnswer, socket: Socket | undefined): void {
    const waiting = this.#take(id);
    if (socket === undefined || waiting === undefined || this.#closed) {
      socket?.destroy();
      waiting?.reject(new Error(problem ?? "the connection was closed"));
      return;
    }
    socket.allowHalfOpen = true;
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    socket.on("error", () => {}); // the reader handles a reset
    waiting.resolve(socket);
  }

  #take(id: number): WaitingReader | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const socket of this.#sockets) socket.destroy();
    const child = await this.#child?.catch(() => null);
    if (child == null || child.exitCode !== null || child.signalCode !== null) return;
    const closed = new Promise((resolve) => child.once("close", resolve));
    // Else this process ends here, where nothing else keeps it: without a word, and with exit code 0.
    child.ref();
    child.kill("SIGKILL");
    await closed;
  }
}
