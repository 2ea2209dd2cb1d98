/** A sandbox that takes no time: nothing is started in it, its harness is one call, and its grader says 1. A plug-in too. */
import { randomUUID } from "node:crypto";
import { type AddressInfo, createServer } from "node:net";
import type { Duplex } from "node:stream";
import {
  type Door,
  type ExecOptions,
  type ExecResult,
  factsWithoutEngine,
  type Sandbox,
  type SandboxBackend,
} from "../../../sandboxes/sandbox.ts";

const facts = { backend: "instant", isolation: "container", ...factsWithoutEngine } as const;

/** A harness is told where its door is; a grader is not. */
async function exec(_argv: string[], { env = {} }: ExecOptions = {}): Promise<ExecResult> {
  const began = performance.now();
  const base = env.OPENAI_BASE_URL;
  const stdout = base === undefined ? '{"reward":1}\n' : await oneCall(base, env.OPENAI_API_KEY ?? "");
  const duration_ms = performance.now() - began;
  return { exit_code: 0, stdout, stderr: "", timed_out: false, out_of_memory: false, dropped_bytes: 0, duration_ms };
}

async function oneCall(base: string, key: string): Promise<string> {
  const response = await fetch(`${base}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", connection: "close" },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "i" }] }),
  });
  return response.text();
}

async function openDoor(onConnection: (socket: Duplex) => void): Promise<Door> {
  const server = createServer(onConnection);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())) };
}

function instantSandbox(): Sandbox {
  return {
    id: randomUUID(),
    facts,
    path: (inside) => inside,
    exec,
    openDoor,
    writeFiles: async () => undefined,
    async *changes() {},
    async putEntries(entries) {
      for await (const _entry of entries);
    },
    readFiles: async () => [],
    connect: () => Promise.reject(new Error("it has no services")),
    start: () => Promise.reject(new Error("it has no services")),
    freeze: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
}

export default {
  name: "instant",
  title: "nothing at all",
  capabilities: { isolation: "container", network: "none", images: false, remote: false, users: ["agent"], snapshot: false },
  unavailable: async () => null,
  prepare: async () => undefined,
  takes: () => ({ memory_mb: null, disk_mb: null }),
  room: async () => ({ memory_mb: null, disk_mb: null }),
  create: async () => instantSandbox(),
  reap: async () => ({ removed: [], failed: [] }),
} satisfies SandboxBackend;
