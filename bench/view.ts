/**
 * Measures how fast `alidade view` answers for a run of 10 000 rollouts, and how much memory it takes: `node bench/view.ts`.
 * The command runs in its own process, so its memory is measured alone. The aims limit CPU seconds and memory, because other
 * work on the machine changes times more. Exits with 1 if an aim is missed.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { writeViewedRun } from "../test/fakes/records/viewed-run.ts";

const [, script = "", ...args] = process.argv;

const filters = ["?reward=0", "?task=task7*&reward=1", "?reason=undelivered", "?label=split%3Dtrain&turns=>5"];
/** Repeats each filter: one takes less CPU time than the kernel's clock can measure. */
const rounds = 5;

if (args[0] === "--write") await write(args[1] ?? "");
else {
  const folder = await mkdtemp(join(tmpdir(), "alidade-view-"));
  try {
    // The writer's memory is not the server's.
    execFileSync(process.execPath, [script, "--write", folder], { stdio: "inherit" });
    await measure(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function write(folder: string): Promise<void> {
  const tasks = Array.from({ length: 125 }, (_, at) => ({ task_id: `task${at}`, rewards: [1, 0, 0, at % 3 === 0 ? null : 0, 1, 0, 0, 1] }));
  await writeViewedRun(folder, tasks, { groups: 10, turns: 6, words: 30 });
  await writeViewedRun(join(folder, "long"), [{ task_id: "long", rewards: [1] }], { turns: 200, words: 1000 });
}

async function measure(folder: string): Promise<void> {
  const { size } = await stat(join(folder, "trajectories.jsonl"));
  console.log(`10 000 rollouts, ${(size / 1e6).toFixed(0)} MB`);
  for (const what of ["without an index", "with an index"]) {
    const began = performance.now();
    await using view = await openView(folder);
    await view.get("");
    console.log(`${what}: first page after ${((performance.now() - began) / 1000).toFixed(2)} s; server ${shown(await view.memory())}`);
    judge(`first page ${what}`, await view.cpu(), what === "without an index" ? 6 : 1, "s of CPU");
    if (what === "without an index") continue;
    for (const path of [
      "",
      "?reward=0",
      ...filters,
      "tasks",
      "rollout?id=ses5000",
      "tokens?id=ses5000",
      "group?task=task7&group=task7-g0",
    ]) {
      const { ms, kB } = await view.get(path);
      console.log(`${path === "" ? "the run" : path}: ${ms.toFixed(0)} ms, ${kB.toFixed(0)} kB`);
    }
    const memory = await view.memory();
    console.log(`server then: ${shown(memory)}`);
    judge("memory after ten pages", memory.now, 150, "MB");
    const before = await view.cpu();
    for (let round = 0; round < rounds; round++) for (const path of filters) await view.get(path);
    judge("a filter", ((await view.cpu()) - before) / (rounds * filters.length), 0.15, "s of CPU");
  }
  await using view = await openView(join(folder, "long"));
  const before = await view.cpu();
  for (const path of ["rollout?id=ses0", "tokens?id=ses0", "tokens?id=ses0&from=100000"]) {
    const { ms, kB } = await view.get(path);
    console.log(`200 turns, 200 000 tokens, ${path}: ${ms.toFixed(0)} ms, ${kB.toFixed(0)} kB`);
  }
  judge("three pages of 200 000 tokens", (await view.cpu()) - before, 1, "s of CPU");
}

function judge(what: string, value: number, most: number, unit: string): void {
  console.log(`  ${what}: ${value.toFixed(2)} ${unit}, aim at most ${most}: ${value <= most ? "met" : "MISSED"}`);
  // NaN was not measured, so it counts as missed.
  if (!(value <= most)) process.exitCode = 1;
}

type Memory = { now: number; most: number };

function shown({ now, most }: Memory): string {
  return `${now.toFixed(0)} MB, at most ${most.toFixed(0)} MB`;
}

/** `alidade view`, as a user starts it. */
async function openView(folder: string) {
  const child = spawn(process.execPath, [join(import.meta.dirname, "../bin/alidade.js"), "view", folder, "--json"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  const link = new URL((JSON.parse(line) as { url: string }).url);
  const key = link.searchParams.get("key") ?? "";
  return {
    get: async (path: string) => {
      const from = performance.now();
      const answer = await fetch(new URL(path, link.origin), { headers: { authorization: `Bearer ${key}` } });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
      return { ms: performance.now() - from, kB: text.length / 1000 };
    },
    /** What it has now, and the most that it ever had. */
    memory: async (): Promise<Memory> => {
      const status = await readFile(`/proc/${child.pid}/status`, "utf8");
      const megabytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) / 1e3;
      return { now: megabytes("VmRSS"), most: megabytes("VmHWM") };
    },
    /** Seconds of all its threads and of the process that made the index, which other work on the machine does not change much. */
    cpu: async (): Promise<number> => {
      const fields = (await readFile(`/proc/${child.pid}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
      return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100;
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGINT");
      await once(child, "exit");
    },
  };
}
