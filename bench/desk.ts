/**
 * What does a desktop cost: made when it is wanted, taken warm, in CPU and memory; how long is an action; how large is a log?
 *
 *     node bench/desk.ts [--rounds 5] [--steps 40]
 *
 * The desktop is that of `examples/tasks/ticket-desk`: a service with the screen and Chromium, and a service with the desk. The
 * agent is a loop that calls the tool `computer` through the relay. After each call it sends its whole history, with all
 * pictures, to the proxy. The practice engine answers. The exit code is 1 if an aim is missed.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import Docker from "dockerode";
import { currentOwner } from "../base/host/owner.ts";
import { engineNamed } from "../engines/registry.ts";
import { startPracticeEngine } from "../practice/index.ts";
import { HarnessProxy, openTools, type ToolRelay } from "../proxy/index.ts";
import { DiskStore } from "../proxy/store/index.ts";
import { docker } from "../sandboxes/docker.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import { specOf } from "../sandboxes/task-spec.ts";
import { WarmPool } from "../sandboxes/warm-pool.ts";
import { loadTasks } from "../tasks/load-tasks.ts";
import { cpuSecondsWithEnded, markdownTable, numbersOf, type Spread, spread, surroundings, told } from "./measure.ts";

const { values } = parseArgs({ options: { rounds: { type: "string", default: "5" }, steps: { type: "string", default: "40" } } });
const { rounds, steps } = numbersOf(values, "rounds", "steps");
const signal = AbortSignal.timeout(1_800_000);
const engineApi = new Docker();
const run_id = `desk${process.pid}`;
const example = join(import.meta.dirname, "../examples/tasks/ticket-desk/task.yaml");
const [task] = await loadTasks(example);
if (!task) throw new Error(`${example} has no task`);
const spec = specOf(task, { run_id, owner: await currentOwner() });
const before = surroundings();

type Figure = { name: string; aim: number | null; found: number[] };
const figures = new Map<string, Figure>();
function note(name: string, value: number, aim: number | null = null): void {
  const figure = figures.get(name) ?? { name, aim, found: [] };
  figure.found.push(value);
  figures.set(name, figure);
}

const place = await mkdtemp(join(tmpdir(), "alidade-bench-desk-"));
try {
  await using engine = await startPracticeEngine({ maxModelLen: 65_536, signal });
  const store = new DiskStore(join(place, "sessions"));
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  await using proxy = await HarnessProxy.start({ engine: adapter, store, version: "bench" });
  // The first one makes the image, if this machine has none, and fills the page cache.
  await (await docker.create(spec, signal))[Symbol.asyncDispose]();
  for (let round = 0; round < rounds; round++) {
    const started = performance.now();
    await using sandbox = await docker.create(spec, signal);
    note("desktop and desk, made when wanted: s", (performance.now() - started) / 1000, 2.5);
    const { cpu, own, all } = await usedByServices();
    note("… CPU of their processes: s", cpu, 2);
    note("… memory of their own, fresh: MiB", own, 300);
    note("… with their programs' files: MiB", all);
    if (round === 0) await useWhole(proxy, engine.model, sandbox);
    else await useShortly(proxy, sandbox);
  }
  for (let round = 0; round < rounds; round++) {
    await using pool = new WarmPool(docker, { sandboxes: 1, seconds: 600 });
    using expected = pool.expect(spec);
    while (pool.counters.ready === 0) await sleep(20, undefined, { signal });
    const started = performance.now();
    await using _taken = await expected.create(spec, signal);
    note("taken warm: ms", performance.now() - started, 10);
  }
  await proxy.engine.close();
} finally {
  await rm(place, { recursive: true, force: true });
}
const after = surroundings();
console.log(
  `${before.machine}; Node ${before.node}; commit ${before.commit}; load ${before.load.toFixed(1)} before, ${after.load.toFixed(1)} after\n`,
);
const lines = [...figures.values()].map(({ name, aim, found }) => {
  const seen = spread(found);
  if (isMissed(seen, aim)) process.exitCode = 1;
  return [name, told(seen), aim === null ? "" : `${aim}${isMissed(seen, aim) ? ": missed" : ""}`];
});
console.log(markdownTable(["what", "median (lowest–highest)", "aim"], lines).join("\n"));

function isMissed(seen: Spread | null, aim: number | null): boolean {
  return aim !== null && !(seen !== null && seen.median <= aim);
}

/** Actions of one desktop, without a model. */
async function useShortly(proxy: HarnessProxy, sandbox: Sandbox): Promise<void> {
  const { session } = await proxy.openSession({ purpose: "eval", sandboxed: true });
  await using relay = await openTools(session, task?.environment.tools ?? [], sandbox, signal);
  for (const action of actions(12)) await act(relay, action);
}

/** An agent of so many steps. Then the size of what the session left on disk is compared to its pictures. */
async function useWhole(proxy: HarnessProxy, model: string, sandbox: Sandbox): Promise<void> {
  const { session, key } = await proxy.openSession({ purpose: "train", sandboxed: true });
  await using relay = await openTools(session, task?.environment.tools ?? [], sandbox, signal);
  const messages: unknown[] = [{ role: "user", content: task?.instruction }];
  const pictures = new Map<string, number>();
  for (const action of actions(steps)) {
    const data = await act(relay, action);
    const bytes = Buffer.from(data, "base64");
    pictures.set(createHash("sha256").update(bytes).digest("hex"), bytes.length);
    messages.push({ role: "user", content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${data}` } }] });
    messages.push({ role: "assistant", content: await ask(proxy, key, { model, messages, max_tokens: 16 }) });
  }
  await proxy.sessions.close(session, "the bench has played its steps");
  const stored = await bytesBelow(join(place, "sessions"));
  const distinct = [...pictures.values()].reduce((sum, size) => sum + size, 0);
  note("distinct pictures", pictures.size);
  note("… their bytes: MB", distinct / 1e6);
  note(`log and pictures of ${steps} steps on disk: MB`, stored / 1e6, Number(((1.05 * distinct) / 1e6 + 1).toFixed(2)));
}

type Action = { name: string; arguments: Record<string, unknown> };

/** The list of tickets, one ticket, then letters in its field: each letter changes the screen. */
function actions(count: number): Action[] {
  const click = { name: "a click that opens a page: ms", arguments: { action: "click", x: 300, y: 122 } };
  const field = { name: "a click into a field: ms", arguments: { action: "click", x: 300, y: 122 } };
  const look = { name: "a screenshot: ms", arguments: { action: "screenshot" } };
  const letters = Array.from({ length: Math.max(0, count - 3) }, (_, at) => ({
    name: "a letter: ms",
    arguments: { action: "type", text: "abcdefghij"[at % 10] },
  }));
  return [look, click, field, ...letters].slice(0, count);
}

/** Returns the settled picture, as base64 of a PNG. */
async function act(relay: ToolRelay, { name, arguments: args }: Action): Promise<string> {
  const started = performance.now();
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "computer", arguments: args } };
  const answer = await relay.answer("computer", JSON.stringify(call));
  note(name, performance.now() - started, 150);
  const { result } = JSON.parse(answer ?? "{}") as { result?: { content?: { type: string; data?: string }[] } };
  const data = result?.content?.find(({ type }) => type === "image")?.data;
  if (data === undefined) throw new Error(`no picture after ${JSON.stringify(args)}: ${answer?.slice(0, 500)}`);
  return data;
}

async function ask(proxy: HarnessProxy, key: string, body: unknown): Promise<string> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const answer = await fetch(`${proxy.url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(body), signal });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`the proxy answered ${answer.status}: ${text.slice(0, 500)}`);
  const { choices } = JSON.parse(text) as { choices: { message: { content: string | null } }[] };
  return choices[0]?.message.content ?? "";
}

type Used = { cpu: number; own: number; all: number };

/** CPU seconds and MiB of the processes of the services, without the agent's own container. */
async function usedByServices(): Promise<Used> {
  const found = await engineApi.listContainers({ filters: { label: [`alidade.run=${run_id}`] } });
  const services = found.filter(({ Names }) => Names.some((name) => /-(screen|desk)$/.test(name)));
  const lists = await Promise.all(services.map(({ Id }) => engineApi.getContainer(Id).top({ ps_args: "-eo pid" })));
  const used = lists.flatMap(({ Processes }) => Processes.flat().map((pid: string) => usedBy(Number(pid))));
  const sum = (name: keyof Used) => used.reduce((all, one) => all + one[name], 0);
  return { cpu: sum("cpu"), own: sum("own"), all: sum("all") };
}

/** `own`: memory that is no file's. `all`: with files' pages, of which each process that shares them counts a part. */
function usedBy(pid: number): Used {
  const pages = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const mib = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB$`, "m").exec(pages)?.[1] ?? Number.NaN) / 1024;
  return { cpu: cpuSecondsWithEnded(pid) ?? Number.NaN, own: mib("Pss_Anon") + mib("Pss_Shmem"), all: mib("Pss") };
}

async function bytesBelow(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true });
  const sizes = await Promise.all(names.map(async (name) => await stat(join(folder, name))));
  return sizes.filter((one) => one.isFile()).reduce((sum, { size }) => sum + size, 0);
}
