/**
 * What does a rollout cost `alidade service` itself, and does its memory stay flat?
 *
 *     node bench/scale/service-cpu.ts [--rollouts 10000] [--concurrency 8]
 *
 * The real command with its embedded ledger and node: proxy, session log, reconstruction, grading, blobs, results. Sandboxes are
 * instant, the harness is one call of one token, and its end of the call runs in the service too. Engine and trainer are this
 * process.
 */
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ScriptedEngine } from "../../test/fakes/engines/scripted-engine.ts";
import { startCli } from "../../test/fakes/processes/cli.ts";
import { cpuSeconds, markdownTable, surroundings } from "../measure.ts";
import { memoryMark, type ProcessMemory } from "./process-memory.ts";

const { values } = parseArgs({
  options: {
    rollouts: { type: "string", default: "10000" },
    concurrency: { type: "string", default: "8" },
    /** For `node`: such as --cpu-prof, by NODE_OPTIONS. */
    node: { type: "string" },
  },
});
const rollouts = Number(values.rollouts);
const samples = 5;
/** Results between two looks. */
const step = rollouts / 10;
/** MB that its memory may be away from what it was after the first look. */
const flatMb = 50;

const place = await mkdtemp(join(tmpdir(), "alidade-service-cpu-"));
await mkdir(join(place, "task"));
await writeFile(join(place, "task", "task.yaml"), `task_id: t\ninstruction: i\ngrader: { kind: script, command: ["true"] }\n`);
await using engine = await ScriptedEngine.start(() => ({ text: "" }));
const sandbox = join(import.meta.dirname, "../../test/fakes/rollouts/instant-sandbox.ts");
await writeFile(join(place, "run.yaml"), `engine: { url: "${engine.url}" }\nharness: { command: ["true"] }\nsandbox: ${sandbox}\n`);
await using service = startCli(["service", "task", "-c", "run.yaml", "-p", "0", "--json", "--concurrency", values.concurrency], {
  cwd: place,
  env: {
    NODE_OPTIONS: `--import ${join(import.meta.dirname, "process-memory.ts")} ${values.node ?? ""}`,
    PROCESS_MEMORY: "say",
  },
});
await service.until(() => service.stdout.includes("\n"));
const { url, token } = JSON.parse(await readFile(join(place, "runs/service/service.json"), "utf8")) as { url: string; token: string };

async function ask(method: string, path: string, body?: string): Promise<string> {
  const response = await fetch(url + path, { method, headers: { authorization: `Bearer ${token}` }, ...(body !== undefined && { body }) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${text}`);
  return text;
}

type Look = { count: number; cpu: number; memory: ProcessMemory };

async function look(count: number): Promise<Look> {
  const cpu = cpuSeconds(service.child.pid ?? 0) ?? Number.NaN;
  const said = () => service.stderr.split(memoryMark).slice(1);
  const before = said().length;
  service.child.kill("SIGUSR2");
  await service.until(() => said().length > before && service.stderr.endsWith("\n"));
  return { count, cpu, memory: JSON.parse(said().at(-1)?.split("\n")[0] ?? "") as ProcessMemory };
}

const { set_id } = JSON.parse(await ask("PUT", "/sets/s", JSON.stringify({ samples }))) as { set_id: string };
const before = await look(0);
const began = performance.now();
const groups = Array.from({ length: rollouts / samples }, (_, at) => JSON.stringify({ group_key: `g${at}`, task: "t" }));
await ask("POST", `/sets/${set_id}/groups`, groups.join("\n"));
const looks = [await look(0)];
let after: string | null = null;
for (let read = 0; read < rollouts; ) {
  const text = await ask("GET", `/sets/${set_id}/results?limit=100&wait=30${after === null ? "" : `&after=${after}`}`);
  for (const line of text.split("\n").filter(Boolean)) {
    const { cursor, result } = JSON.parse(line) as { cursor: string; result: { state: string; reward: number | null; error: unknown } };
    if (result.state !== "completed" || result.reward !== 1) throw new Error(`a rollout failed: ${line}`);
    after = cursor;
    read += 1;
    engine.requests.length = 0;
    if (read % step === 0) looks.push(await look(read));
  }
}
const seconds = (performance.now() - began) / 1000;
await service.kill("SIGTERM");
await rm(place, { recursive: true, force: true });

const cost = (from: { count: number; cpu: number }, to: { count: number; cpu: number }): string =>
  `${(((to.cpu - from.cpu) * 1000) / (to.count - from.count)).toFixed(1)} ms`;
const first = looks[1] ?? before;
const rows = looks.slice(1).map((to, at) => {
  const { resident, heap, outside } = to.memory;
  return [String(to.count), cost(looks[at] ?? before, to), ...[resident, heap, outside].map((value) => value.toFixed(1))];
});
const awayMb = (of: keyof ProcessMemory) => Math.max(...looks.slice(1).map(({ memory }) => Math.abs(memory[of] - first.memory[of])));
const verdictOf = (of: keyof ProcessMemory) =>
  `${awayMb(of) <= flatMb ? "flat" : "NOT FLAT"}: at most ${awayMb(of).toFixed(1)} MB away from ${first.memory[of]} MB`;
const last = looks.at(-1) ?? before;
/** The least of the second half less the least of the first: what runs at a look is in it too. */
const leastMb = (some: Look[]) => Math.min(...some.map(({ memory }) => memory.heap));
const bytesEach = ((leastMb(looks.slice(6)) - leastMb(looks.slice(1, 6))) * 2 ** 20) / (rollouts / 2);
console.log(JSON.stringify(surroundings()));
console.log(markdownTable(["rollouts", "CPU a rollout since", "resident MB", "heap in use MB", "outside of it MB"], rows).join("\n"));
console.log(
  `\n${cost(before, last)} of CPU a rollout over ${seconds.toFixed(0)} s, ${before.memory.resident} MB before (allowed: ${flatMb} MB away)\n` +
    `resident: ${verdictOf("resident")}\nheap in use after a collection: ${verdictOf("heap")}, ${bytesEach.toFixed(0)} bytes more a rollout`,
);
