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
/** MB that its resident memory may be away from what it was after the first look. */
const flatMb = 50;

const place = await mkdtemp(join(tmpdir(), "alidade-service-cpu-"));
await mkdir(join(place, "task"));
await writeFile(join(place, "task", "task.yaml"), `task_id: t\ninstruction: i\ngrader: { kind: script, command: ["true"] }\n`);
await using engine = await ScriptedEngine.start(() => ({ text: "" }));
const sandbox = join(import.meta.dirname, "instant-sandbox.ts");
await writeFile(join(place, "run.yaml"), `engine: { url: "${engine.url}" }\nharness: { command: ["true"] }\nsandbox: ${sandbox}\n`);
await using service = startCli(["service", "task", "-c", "run.yaml", "-p", "0", "--json", "--concurrency", values.concurrency], {
  cwd: place,
  ...(values.node && { env: { NODE_OPTIONS: values.node } }),
});
await service.until(() => service.stdout.includes("\n"));
const { url, token } = JSON.parse(await readFile(join(place, "runs/service/service.json"), "utf8")) as { url: string; token: string };

async function ask(method: string, path: string, body?: string): Promise<string> {
  const response = await fetch(url + path, { method, headers: { authorization: `Bearer ${token}` }, ...(body !== undefined && { body }) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${text}`);
  return text;
}

async function look(count: number): Promise<{ count: number; cpu: number; rssMb: number }> {
  const status = await readFile(`/proc/${service.child.pid}/status`, "utf8");
  const rssMb = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
  return { count, cpu: cpuSeconds(service.child.pid ?? 0) ?? Number.NaN, rssMb };
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
const rows = looks.slice(1).map((to, at) => [String(to.count), cost(looks[at] ?? before, to), to.rssMb.toFixed(0)]);
const away = Math.max(...looks.slice(1).map(({ rssMb }) => Math.abs(rssMb - first.rssMb)));
console.log(JSON.stringify(surroundings()));
console.log(markdownTable(["rollouts", "CPU a rollout since", "resident MB"], rows).join("\n"));
console.log(
  `\n${cost(before, looks.at(-1) ?? before)} of CPU a rollout over ${seconds.toFixed(0)} s, ${before.rssMb.toFixed(0)} MB before; ` +
    `${away <= flatMb ? "flat" : "NOT FLAT"}: at most ${away.toFixed(0)} MB away from ${first.rssMb.toFixed(0)} MB (allowed: ${flatMb})`,
);
