/**
 * The door of a container, in two ways. The portable one is a forwarder inside that carries connections over one
 * attached exec stream: it works wherever the engine's API does (remote, desktop, Podman). Where the engine runs on this
 * Linux machine and we are root, this process itself listens inside the container's network namespace: no copy on the
 * way, and nothing of ours inside.
 */
import { spawn } from "node:child_process";
import { access, readFile, readlink } from "node:fs/promises";
import type { Server, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { AlidadeError, messageOf } from "../../errors.ts";
import { BoundedOutput } from "../../host/bounded-output.ts";
import { forwarderFile } from "../door/door-pack.ts";
import { Multiplexer, maxStreams } from "../door/multiplexer.ts";
import type { Door } from "../sandbox.ts";
import { demultiplex } from "./attached-stream.ts";
import { engineWork } from "./client.ts";
import { doorId, doorInside } from "./container.ts";
import { attach } from "./exec.ts";

/** Fixed, so that nothing random can find its way into a transcript. */
export const doorPort = 4000;
const url = `http://127.0.0.1:${doorPort}`;

export const doorKinds = ["auto", "forwarder", "namespace"] as const;
export type DoorKind = (typeof doorKinds)[number];

export type OnConnection = (socket: Duplex) => void;

/** A loaded machine starts Node in a second or two; longer means that it never will. */
const openMs = 20_000;
/** A forwarder that was killed (memory ran out) is started again, so that the policy sees its own fault and not ours. */
const maxRestarts = 5;

export async function openContainerDoor(docker: Docker, containerId: string, kind: DoorKind, onConnection: OnConnection): Promise<Door> {
  if (kind === "forwarder") return ForwarderDoor.open(docker, containerId, onConnection);
  const pid = await localPid(docker, containerId);
  if (pid !== null) {
    try {
      return await openNamespaceDoor(pid, onConnection);
    } catch (error) {
      if (kind === "namespace") throw doorError(error);
    }
  } else if (kind === "namespace") {
    throw doorError(new Error("it needs root and a Docker engine on this Linux machine"));
  }
  return ForwarderDoor.open(docker, containerId, onConnection);
}

function doorError(error: unknown): AlidadeError {
  return new AlidadeError("sandbox_error", `The sandbox's door could not be opened: ${messageOf(error)}`, { cause: error });
}

/** The container's process as this machine knows it; null where the engine's pids are not ours (virtual machine, remote). */
async function localPid(docker: Docker, containerId: string): Promise<number | null> {
  if (process.platform !== "linux" || process.geteuid?.() !== 0) return null;
  const { State, Id } = await docker.getContainer(containerId).inspect();
  if (!State.Running || State.Pid <= 0) return null;
  try {
    // A pid of another machine may well exist here: only the container's own cgroup or mounts name its id.
    const [cgroup, mounts] = await Promise.all([
      readFile(`/proc/${State.Pid}/cgroup`, "utf8"),
      readFile(`/proc/${State.Pid}/mountinfo`, "utf8"),
    ]);
    if (!cgroup.includes(Id) && !mounts.includes(Id)) return null;
    const [ours, theirs] = await Promise.all([readlink("/proc/self/ns/net"), readlink(`/proc/${State.Pid}/ns/net`)]);
    if (ours === theirs) return null;
    await Promise.any((process.env.PATH ?? "").split(":").map((folder) => access(`${folder}/nsenter`)));
    return State.Pid;
  } catch {
    return null;
  }
}

/** Enters the namespace, binds, hands the listening socket over and ends: nothing stays behind in the sandbox. */
const listenAndHandOver = `const server = require("net").createServer();
server.listen({ port: Number(process.argv[1]), host: "127.0.0.1", backlog: 1024 }, () =>
  process.send("server", server, () => { process.disconnect(); process.exit(0); }));`;

async function openNamespaceDoor(pid: number, onConnection: OnConnection): Promise<Door> {
  const server = await listenIn(pid);
  // As many as the forwarder carries: each is a file of this process, and others need some too.
  server.maxConnections = maxStreams;
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {}); // a connection that is reset is the reader's business
    socket.setNoDelay(true);
    onConnection(socket);
  });
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function listenIn(pid: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const enter = ["-t", String(pid), "-n", process.execPath, "-e", listenAndHandOver, String(doorPort)];
    const child = spawn("nsenter", enter, { stdio: ["ignore", "ignore", "pipe", "ipc"], env: { PATH: process.env.PATH }, timeout: openMs });
    const problems = new BoundedOutput(2_000);
    child.stderr?.on("data", (chunk: Buffer) => problems.push(chunk));
    child.once("message", (_message, server) => {
      const listening = server as Server & { allowHalfOpen: boolean };
      // As an HTTP server of our own would have it: a client that has only finished sending is still answered.
      listening.allowHalfOpen = true;
      listening.on("error", () => {});
      resolve(listening);
    });
    child.once("error", reject);
    child.once("close", (code) => reject(new Error(`nsenter ended with ${code}: ${problems}`)));
  });
}

class ForwarderDoor implements Door {
  readonly url = url;
  readonly #docker: Docker;
  readonly #containerId: string;
  readonly #onConnection: OnConnection;
  readonly #closed = new AbortController();
  #stream: Duplex | null = null;
  #carrying: Promise<void> = Promise.resolve();

  private constructor(docker: Docker, containerId: string, onConnection: OnConnection) {
    this.#docker = docker;
    this.#containerId = containerId;
    this.#onConnection = onConnection;
  }

  static async open(docker: Docker, containerId: string, onConnection: OnConnection): Promise<ForwarderDoor> {
    const door = new ForwarderDoor(docker, containerId, onConnection);
    try {
      await door.#start(0);
      return door;
    } catch (error) {
      await door[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort();
    this.#stream?.end(); // end of input: the forwarder leaves
    this.#stream?.destroy();
    await this.#carrying;
  }

  /** Resolves when the forwarder listens. */
  async #start(restarts: number): Promise<void> {
    const { stream } = await engineWork.run(this.#closed.signal, () =>
      attach(
        this.#docker,
        this.#containerId,
        {
          argv: [`${doorInside}/node`, "--disable-warning=ExperimentalWarning", `${doorInside}/${forwarderFile}`, String(doorPort)],
          user: `${doorId}:${doorId}`,
          cwd: "/",
          // An image may set these; the forwarder is ours.
          env: { NODE_OPTIONS: "", LD_PRELOAD: "", LD_LIBRARY_PATH: "", HOME: "/" },
        },
        true,
      ),
    );
    this.#stream = stream;
    stream.on("error", () => {});
    const ready = Promise.withResolvers<void>();
    const complaints = new BoundedOutput(2_000);
    const multiplexer = new Multiplexer(stream, { onReady: ready.resolve, onStream: this.#onConnection });
    this.#carrying = carry(stream, multiplexer, complaints).then(() => {
      ready.reject(new Error(complaints.toString().trim() || "the forwarder ended"));
      stream.destroy();
      if (opened && !this.#closed.signal.aborted && restarts < maxRestarts) void this.#restart(restarts + 1);
    });
    let opened = false;
    const late = sleep(openMs, undefined, { ref: false }).then(() =>
      ready.reject(new Error(`the forwarder did not listen within ${openMs} ms`)),
    );
    late.catch(() => {});
    try {
      await ready.promise;
      opened = true;
    } catch (error) {
      stream.destroy();
      throw doorError(error);
    }
  }

  async #restart(restarts: number): Promise<void> {
    try {
      await sleep(100 * restarts, undefined, { signal: this.#closed.signal });
      await this.#start(restarts);
    } catch {
      // The container is gone, or cannot start a process any more: its next command says so.
    }
  }
}

/** Feeds what the forwarder sends until its stream ends, however it ends. */
async function carry(stream: Duplex, multiplexer: Multiplexer, complaints: BoundedOutput): Promise<void> {
  try {
    for await (const { stream: name, bytes } of demultiplex(stream)) {
      if (name === "stderr") complaints.push(bytes);
      // A forwarder that could not be started at all is explained by the engine on stdout.
      else if (bytes.subarray(0, 3).toString("latin1") === "OCI") complaints.push(bytes);
      else multiplexer.feed(bytes);
    }
  } catch (error) {
    complaints.push(Buffer.from(messageOf(error)));
  } finally {
    multiplexer.close();
  }
}
