/**
 * The door of a container on this Linux machine, opened by root: this process itself listens inside the container's
 * network namespace. Nothing is copied on the way, and nothing of ours is inside.
 */
import { spawn } from "node:child_process";
import { access, readFile, readlink } from "node:fs/promises";
import type { Server, Socket } from "node:net";
import { hostname } from "node:os";
import { BoundedOutput } from "../../base/host/bounded-output.ts";
import type { Door } from "../sandbox.ts";
import { doorPort, type OnConnection, openMs } from "./door-kind.ts";
import { maxStreams } from "./multiplexer.ts";

/**
 * Whether `pid` is the container's process on this machine and its namespaces may be entered. A pid of another machine
 * may exist here too: only the container's own cgroup or mounts name its id.
 */
export async function canEnter(pid: number, containerId: string): Promise<boolean> {
  if (process.platform !== "linux" || process.geteuid?.() !== 0 || pid <= 0) return false;
  try {
    const [cgroup, mounts] = await Promise.all([readFile(`/proc/${pid}/cgroup`, "utf8"), readFile(`/proc/${pid}/mountinfo`, "utf8")]);
    if (!cgroup.includes(containerId) && !mounts.includes(containerId)) return false;
    const [ours, theirs] = await Promise.all([readlink("/proc/self/ns/net"), readlink(`/proc/${pid}/ns/net`)]);
    if (ours === theirs) return false;
    await findNsenter();
    return true;
  } catch {
    return false;
  }
}

/**
 * Tells whether this process could enter the namespaces of an engine's containers, before there is one. `engine`: the name of the
 * engine's machine. False where that is not certain.
 */
export async function mayEnter(engine: string | undefined): Promise<boolean> {
  if (process.platform !== "linux" || process.geteuid?.() !== 0 || engine !== hostname()) return false;
  try {
    // In a container with the host's name, pids are others.
    if ((await readlink("/proc/self/ns/pid")) !== firstPidNamespace) return false;
    await findNsenter();
    return true;
  } catch {
    return false;
  }
}

/** The kernel's own constant (PROC_PID_INIT_INO). */
const firstPidNamespace = "pid:[4026531836]";

function findNsenter(): Promise<void> {
  return Promise.any((process.env.PATH ?? "").split(":").map((folder) => access(`${folder}/nsenter`)));
}

/** Enters the namespace, binds, hands the listening socket over and ends: nothing stays behind in the sandbox. */
const listenAndHandOver = `const server = require("net").createServer();
server.listen({ port: Number(process.argv[1]), host: "127.0.0.1", backlog: 1024 }, () =>
  process.send("server", server, () => { process.disconnect(); process.exit(0); }));`;

export async function openNamespaceDoor(pid: number, onConnection: OnConnection, port = doorPort): Promise<Door> {
  const server = await listenIn(pid, port);
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
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

function listenIn(pid: number, port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const enter = ["-t", String(pid), "-n", process.execPath, "-e", listenAndHandOver, String(port)];
    const child = spawn("nsenter", enter, { stdio: ["ignore", "ignore", "pipe", "ipc"], env: { PATH: process.env.PATH }, timeout: openMs });
    const problems = new BoundedOutput(2_000).follow(child.stderr);
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
