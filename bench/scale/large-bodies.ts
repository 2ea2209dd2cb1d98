/**
 * What does the service hold in memory while large bodies come in, and after they have?
 *
 *     node bench/scale/large-bodies.ts [--bodies 8] [--only trajectories]
 *
 * The service is a process of its own, over a ledger in a file; this one sends. All bodies of a row come at once. Resident memory
 * is the kernel's word: before, the highest, and five seconds after the last answer.
 */
import { hash, randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Child } from "../child.ts";
import { markdownTable, numbersOf, surroundings } from "../measure.ts";
import type { HostPlace } from "./host.ts";

const { values } = parseArgs({ options: { bodies: { type: "string", default: "8" }, only: { type: "string" } } });
const { bodies } = numbersOf(values, "bodies");
const token = "bench";
const mebibyte = 2 ** 20;

/** A body of 250 MB, as those of a long trajectory with its ids. */
const trajectory = randomBytes(250_000_000);
const digits = hash("sha256", trajectory).slice(0, 16);

/** Groups with a task of 300 kB each, 60 MiB of them; `at` makes their keys. */
function groupsBody(at: number): Buffer {
  const task = (n: number) => ({
    task_id: `t${n}`,
    instruction: "Do it.",
    environment: { setup: { command: ["sh", "-c", `echo ${"x".repeat(300_000)}`] } },
    grader: { kind: "script", command: ["true"] },
  });
  return Buffer.from(Array.from({ length: 200 }, (_, n) => JSON.stringify({ group_key: `g${at}-${n}`, task: task(n) })).join("\n"));
}

/** Logprobs of a trainer, 60 MiB. */
function driftBody(): Buffer {
  const logprobs = Array.from({ length: 20_000 }, () => -0.123456789012345);
  return Buffer.from(Array.from({ length: 170 }, (_, n) => JSON.stringify({ rollout_id: `r${n}`, call_id: `c${n}`, logprobs })).join("\n"));
}

type Kind = { name: string; method: string; path: (set: string, at: number) => string; body: (at: number) => Buffer; isDeclared: boolean };
const kinds: Kind[] = [
  {
    name: "trajectories of 250 MB",
    method: "PUT",
    path: (set, at) => `/blobs/${set}/r${at}/1-${digits}.json.zst`,
    body: () => trajectory,
    isDeclared: true,
  },
  {
    name: "refused, 250 MB of unsaid length",
    method: "POST",
    path: (set) => `/sets/${set}/groups`,
    body: () => trajectory,
    isDeclared: false,
  },
  { name: "groups, 60 MiB", method: "POST", path: (set) => `/sets/${set}/groups`, body: groupsBody, isDeclared: true },
  { name: "logprobs, 60 MiB", method: "POST", path: (set) => `/sets/${set}/drift`, body: driftBody, isDeclared: true },
];

const lines: string[][] = [];
const before = surroundings();
for (const kind of kinds.filter(({ name }) => values.only === undefined || name.includes(values.only))) lines.push(await measured(kind));
console.log(`${before.machine}; Node ${before.node}; commit ${before.commit}; load ${before.load.toFixed(1)} before\n`);
console.log(markdownTable([`${bodies} bodies at once`, "before MB", "highest MB", "after MB", "answers", "seconds"], lines).join("\n"));

async function measured({ name, method, path, body, isDeclared }: Kind): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-bodies-"));
  try {
    await using host = new Child(join(import.meta.dirname, "host.ts"));
    await host.ask("open", { ledger: folder, token, folder } satisfies HostPlace);
    const url = await host.ask<string>("serve");
    const set = JSON.parse(await send(`${url}/sets/bench`, "PUT", Buffer.from("{}"), true).then(({ text }) => text)).set_id as string;
    const all = Array.from({ length: bodies }, (_, at) => body(at));
    await sleep(2_000);
    const resident = await residentOf(host.pid, "VmRSS");
    await writeFile(`/proc/${host.pid}/clear_refs`, "5");
    const began = performance.now();
    const answers = await Promise.all(all.map((bytes, at) => send(url + path(set, at), method, bytes, isDeclared)));
    const seconds = (performance.now() - began) / 1000;
    const highest = await residentOf(host.pid, "VmHWM");
    await sleep(5_000);
    const after = await residentOf(host.pid, "VmRSS");
    const statuses = Map.groupBy(answers, ({ status }) => status);
    const said = [...statuses].map(([status, of]) => `${of.length} × ${status}`).join(", ");
    return [name, ...[resident, highest, after].map((kilobytes) => (kilobytes / 1024).toFixed(0)), said, seconds.toFixed(1)];
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function residentOf(pid: number, field: "VmRSS" | "VmHWM"): Promise<number> {
  const text = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1]);
}

/** Status 0: the connection ended before an answer came. */
function send(url: string, method: string, body: Buffer, isDeclared: boolean): Promise<{ status: number; text: string }> {
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${token}`, ...(isDeclared && { "content-length": body.length }) };
    const asked = request(url, { method, headers }, async (answer) => {
      const text = Buffer.concat(await answer.toArray().catch(() => [])).toString("utf8");
      asked.destroy();
      resolve({ status: answer.statusCode ?? 0, text });
    });
    asked.on("error", () => resolve({ status: 0, text: "" }));
    for (let at = 0; at < body.length; at += mebibyte) asked.write(body.subarray(at, at + mebibyte));
    asked.end();
  });
}
