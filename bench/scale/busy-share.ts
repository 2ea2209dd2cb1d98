/**
 * Measures how busy rollouts in real containers keep an engine, when a few rollouts take much longer than most. Compares this with list
 * scheduling, the order in which the engine could finish soonest.
 *
 *     node bench/scale/busy-share.ts [--places 4] [--slots 8] [--rollouts 40] [--mean 4]
 *
 * Uses one machine: the embedded ledger and node, and Docker sandboxes. Each grading gets a fresh sandbox. The engine only counts its
 * calls and sleeps, so the containers get the CPU. Each rollout's engine time is log-normal, and each call's too. Measures twice: with a
 * sandbox prepared ahead, and without.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { currentOwner } from "../../base/host/owner.ts";
import { engineNamed } from "../../engines/registry.ts";
import { commandHarness } from "../../harnesses/command.ts";
import { HarnessProxy } from "../../proxy/index.ts";
import { DiskStore } from "../../proxy/store/index.ts";
import { makeSlots, RunFolder } from "../../rollouts/index.ts";
import { docker } from "../../sandboxes/docker.ts";
import { FolderBlobs } from "../../service/blobs/index.ts";
import { GroupPart, SetSpec, SqliteLedger } from "../../service/ledger/index.ts";
import { runNode } from "../../service/nodes/index.ts";
import { ScriptedEngine, type WireRequest } from "../../test/fakes/engines/scripted-engine.ts";
import { markdownTable, numbersOf, surroundings } from "../measure.ts";
import { doneAt, durationOf, listSchedule } from "./durations.ts";

const { values } = parseArgs({
  options: {
    places: { type: "string", default: "4" },
    slots: { type: "string", default: "8" },
    rollouts: { type: "string", default: "40" },
    mean: { type: "string", default: "4" },
  },
});
const { places, slots, rollouts, mean } = numbersOf(values, "places", "slots", "rollouts", "mean");
const signal = AbortSignal.timeout(3_600_000);
const names = Array.from({ length: rollouts }, (_, at) => `rollout-${at}`);
/** The longest is the mean times seven, as sixty minutes are to nine. */
const lengthOf = (name: string): number => durationOf(name, { meanSeconds: mean, sigma: 0.8, mostSeconds: (mean * 60) / 9 });

/** Seconds of each of a rollout's calls: about one a second, so a few of each rollout. */
function callsOf(name: string): number[] {
  const count = Math.max(1, Math.round(lengthOf(name)));
  const weights = Array.from({ length: count }, (_, at) =>
    durationOf(`${name}/${at}`, { meanSeconds: 1, sigma: 0.8, mostSeconds: Number.POSITIVE_INFINITY }),
  );
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => (lengthOf(name) * weight) / total);
}

/** Asks until the answer is `done`, by the shell alone, so that the harness itself costs little. */
const askUntilDone = `
messages='{"role":"user","content":"'$1'"}'
while :; do
  body='{"model":"scripted","messages":['$messages']}'
  exec 3<>/dev/tcp/127.0.0.1/4000
  printf 'POST /v1/chat/completions HTTP/1.1\\r\\nHost: a\\r\\nContent-Type: application/json\\r\\nContent-Length: %s\\r\\nConnection: close\\r\\n\\r\\n%s' "\${#body}" "$body" >&3
  answer=$(cat <&3)
  case $answer in *'"done"'*) exit 0 ;; *'"go"'*) ;; *) echo "$answer" >&2; exit 1 ;; esac
  messages=$messages',{"role":"assistant","content":"go"},{"role":"user","content":"on"}'
done`;

const taskOf = (name: string) => ({
  task_id: name,
  instruction: name,
  limits: { memory_mb: 256, disk_mb: 64, agent_seconds: 600, grade_seconds: 600 },
  grader: { kind: "script", command: ["echo", '{"reward":1}'] },
});

/** When calls began and ended at the engine. */
type Flight = { time: number; change: 1 | -1 };

function answered(flights: Flight[]) {
  return ({ messages, probe }: WireRequest) => {
    const name = String(messages[0]?.content);
    const calls = probe || !name.startsWith("rollout-") ? [] : callsOf(name);
    const turn = messages.filter(({ role }) => role === "assistant").length;
    if (calls.length === 0) return { text: "done" };
    flights.push({ time: Date.now(), change: 1 });
    const before = sleep((calls[turn] ?? 0) * 1000).then(() => void flights.push({ time: Date.now(), change: -1 }));
    return { text: turn + 1 < calls.length ? "go" : "done", before };
  };
}

type Measured = { began: number; ends: number[]; flights: Flight[] };

async function measure(ahead: number): Promise<Measured> {
  const place = await mkdtemp(join(tmpdir(), "alidade-busy-share-"));
  const flights: Flight[] = [];
  await using engine = await ScriptedEngine.start(answered(flights));
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  {
    await using folder = await RunFolder.open(join(place, "run"));
    const store = new DiskStore(RunFolder.sessions(folder.path));
    const engines = [{ name: "counting", engine: adapter, callsAtOnce: places }];
    await using proxy = await HarnessProxy.start({ engines, store, version: "bench" });
    await using ledger = SqliteLedger.open(join(place, "ledger.sqlite"));
    const harness = commandHarness({ argv: ["bash", "-c", askUntilDone, "bash", "{instruction}"] });
    const setup = {
      run_id: `busy${process.pid}-${ahead}`,
      owner: await currentOwner(),
      backend: docker,
      proxy,
      folder,
      slots: makeSlots({ init: Math.ceil(slots / 2), run: slots, post: Math.ceil(slots / 2), ahead }),
      onProgress: () => undefined,
    };
    const stop = new AbortController();
    const blobs = new FolderBlobs(join(place, "trajectories"));
    const node = runNode({ name: "n", ledger, blobs, setup, harnessNamed: async () => harness, session: {} }, stop.signal);
    try {
      const { set_id } = await ledger.putSet("s", SetSpec.parse({ samples: 1, retries: 0 }));
      const began = Date.now();
      await ledger.submit(
        set_id,
        names.map((name) => GroupPart.parse({ group_key: name, task: taskOf(name) })),
      );
      const rows = await resultsOf(ledger, set_id);
      return { began, ends: rows.map(({ finished }) => finished).toSorted((one, other) => one - other), flights };
    } finally {
      stop.abort();
      await node;
      await adapter.close();
      await rm(place, { recursive: true, force: true });
    }
  }
}

async function resultsOf(ledger: SqliteLedger, set: string) {
  for (;;) {
    const seen = ledger.version;
    const rows = (await ledger.results(set, null, rollouts)).map(({ row }) => row);
    const bad = rows.find(({ reward }) => reward !== 1);
    if (bad) throw new Error(`a rollout failed: ${JSON.stringify(bad)}`);
    if (rows.length === rollouts) return rows;
    await ledger.changed(seen, signal);
  }
}

/** Share of the engine's places that were in use between the two times. */
function busyShare(flights: readonly Flight[], from: number, to: number): { share: number; most: number } {
  let [now, most, used, last] = [0, 0, 0, from];
  for (const { time, change } of [...flights, { time: to, change: 1 as const }]) {
    const until = Math.min(time, to);
    used += Math.min(now, places) * (until - last);
    last = until;
    if (time >= to) break;
    now += change;
    most = Math.max(most, now);
  }
  return { share: used / (places * (to - from)), most };
}

const seconds = names.map(lengthOf);
const bound = listSchedule(seconds, places);
const soonest = doneAt(bound, 0.95);
const boundShare = listedBusy(seconds, soonest);

/** List scheduling does as well until that second. */
function listedBusy(durations: readonly number[], until: number): number {
  const free = Array.from({ length: places }, () => 0);
  let used = 0;
  for (const duration of durations) {
    const at = free.indexOf(Math.min(...free));
    const begins = free[at] ?? 0;
    used += Math.max(0, Math.min(until, begins + duration) - begins);
    free[at] = begins + duration;
  }
  return used / (places * until);
}

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
const rows: string[][] = [];
const loads = [surroundings()];
for (const ahead of [1, 0]) {
  const { began, ends, flights } = await measure(ahead);
  loads.push(surroundings());
  const until = doneAt(ends, 0.95);
  const { share, most } = busyShare(flights, began, until);
  const running = busyShare(flights, flights[0]?.time ?? began, until).share;
  const reached = (until - began) / 1000;
  rows.push([
    String(ahead),
    percent(share),
    percent(running),
    String(most),
    reached.toFixed(1),
    soonest.toFixed(1),
    percent(soonest / reached),
  ]);
}
for (const load of loads) console.log(JSON.stringify(load));
console.log(
  `${rollouts} rollouts with ${names.reduce((sum, name) => sum + callsOf(name).length, 0)} calls over ${places} places, ${slots} slots; list scheduling itself: ${percent(boundShare)} busy until 95 % are done`,
);
console.log(
  markdownTable(
    ["prepared ahead", "busy", "busy since the first call", "most calls at once", "95 % done s", "bound s", "of the bound"],
    rows,
  ).join("\n"),
);
