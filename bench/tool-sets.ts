/**
 * What does a set of services apart cost beside a sandbox: made when it is wanted, taken warm, in memory, and in rollouts?
 *
 *     node bench/tool-sets.ts [--rounds 7] [--rollouts 24] [--at-once 4]
 *
 * The set is the shop of `examples/tasks/retail`: one service, an MCP server in Python over SQLite. Each figure has the same
 * one without services beside it, in the same round. Rollouts are of one call, with a warm pool of as many sandboxes as run.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs, promisify } from "node:util";
import { currentOwner } from "../base/host/owner.ts";
import { HarnessProxy, openTools } from "../proxy/index.ts";
import { MemoryStore } from "../proxy/store/index.ts";
import { ensureBaseImage } from "../sandboxes/docker/images/made/base-image.ts";
import { docker } from "../sandboxes/docker.ts";
import type { Sandbox } from "../sandboxes/sandbox.ts";
import { specOf } from "../sandboxes/task-spec.ts";
import { WarmPool } from "../sandboxes/warm-pool.ts";
import { loadTasks } from "../tasks/load-tasks.ts";
import { Child } from "./child.ts";
import { markdownTable, spread, surroundings, told } from "./measure.ts";
import type { NoOps } from "./sandboxes/no-op-rollouts.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "7" },
    rollouts: { type: "string", default: "24" },
    "at-once": { type: "string", default: "4" },
  },
});
const [rounds, rollouts, concurrency] = [values.rounds, values.rollouts, values["at-once"]].map(Number) as [number, number, number];
const signal = AbortSignal.timeout(3_600_000);
const run = promisify(execFile);
const run_id = `sets${process.pid}`;
const example = join(import.meta.dirname, "../examples/tasks/retail");
const [retail] = await loadTasks(example);
if (!retail) throw new Error(`${example} has no task`);
const owner = await currentOwner();
const withSet = specOf(retail, { run_id, owner });
const { services: _, ...alone } = withSet;
const before = surroundings();
await ensureBaseImage({ signal });

const all: Record<string, number[]> = {};
const note = (name: string, value: number): void => {
  all[name] = [...(all[name] ?? []), value];
};
for (let round = 0; round < rounds; round++) {
  for (const [name, spec] of [
    ["alone", alone],
    ["set", withSet],
  ] as const) {
    note(`cold ${name}`, await timed(() => docker.create(spec, signal), use));
    await using pool = new WarmPool(docker, { sandboxes: 1, seconds: 600 });
    using expected = pool.expect(spec);
    while (pool.counters.ready === 0) await sleep(20, undefined, { signal });
    note(`warm ${name}`, await timed(() => expected.create(spec, signal)));
  }
}
await rollOut();
const after = surroundings();
console.log(
  `${before.machine}; Node ${before.node}; commit ${before.commit}; load ${before.load.toFixed(1)} before, ${after.load.toFixed(1)} after\n`,
);
const lines = Object.entries(all).map(([name, found]) => [name, told(spread(found))]);
console.log(markdownTable(["what", "median (lowest–highest)"], lines).join("\n"));

/** Milliseconds until it is there. */
async function timed(make: () => Promise<Sandbox>, then?: (sandbox: Sandbox) => Promise<void>): Promise<number> {
  const started = performance.now();
  await using sandbox = await make();
  const took = performance.now() - started;
  await then?.(sandbox);
  return took;
}

/** Where it has the set: how long the list of its tools takes, and what its service and namespace hold in memory. */
async function use(sandbox: Sandbox): Promise<void> {
  if (!sandbox.facts.services) return;
  await using proxy = await HarnessProxy.start({ store: new MemoryStore(), version: "bench" });
  const { session } = await proxy.openSession({ purpose: "eval", sandboxed: true });
  const started = performance.now();
  await using relay = await openTools(session, retail?.environment.tools ?? [], sandbox, signal);
  note("list of tools ms", performance.now() - started);
  for (let call = 0; call < 20; call++)
    await relay.answer(
      "shop",
      `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find_user","arguments":{"name":"Mira Lang"}}}`,
    );
  const { stdout } = await run("docker", ["ps", "-q", "--filter", `label=alidade.run=${run_id}`]);
  const ids = stdout.split("\n").filter((id) => id !== "");
  const inspected = await run("docker", ["inspect", "-f", "{{.Name}} {{.State.Pid}}", ...ids]);
  for (const line of inspected.stdout.split("\n")) {
    const [name = "", pid = ""] = line.split(" ");
    if (name.endsWith("-shop")) note("memory of the service MiB", proportional(pid));
    if (name.endsWith(".")) note("memory of its namespace MiB", proportional(pid));
  }
}

/** Pages that processes share count in parts. The service is one process. */
function proportional(pid: string): number {
  return Number(/^Pss: +(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))?.[1] ?? 0) / 1024;
}

async function rollOut(): Promise<void> {
  const place = await mkdtemp(join(tmpdir(), "alidade-bench-sets-"));
  const bare = { task_id: "bare", instruction: "i", limits: retail?.limits, grader: { kind: "state", only: ["**"] } };
  await mkdir(join(place, "bare"));
  await writeFile(join(place, "bare", "task.json"), JSON.stringify(bare));
  try {
    for (let round = 0; round < 3; round++) {
      const rates: number[] = [];
      for (const tasks of [join(place, "bare", "task.json"), example]) {
        await using child = new Child(join(import.meta.dirname, "sandboxes", "no-op-rollouts.ts"));
        const order: NoOps = { run_id, rollouts, concurrency, warm: concurrency, tasks };
        rates.push(rollouts / ((await child.ask<number>("run", order)) / 1000));
      }
      const [without = Number.NaN, withServices = Number.NaN] = rates;
      note("rollouts a second alone", without);
      note("rollouts a second with the set", withServices);
      note("share of the rate", withServices / without);
    }
  } finally {
    await rm(place, { recursive: true });
  }
}
