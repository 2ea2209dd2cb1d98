/**
 * How fast `alidade view` answers for a run of 10 000 rollouts, and what memory it takes: `node bench/view.ts`. The command
 * is a process of its own, so that its memory is told alone.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { writeViewedRun } from "../test/fakes/records/viewed-run.ts";

const [, script = "", ...args] = process.argv;

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
    const took = `${((performance.now() - began) / 1000).toFixed(2)} s (${await view.cpu()} s of CPU)`;
    console.log(`${what}: first page after ${took}; server ${await view.memory()}`);
    if (what === "without an index") continue;
    for (const path of [
      "",
      "?reward=0",
      "?reward=0",
      "?task=task7*&reward=1",
      "?reason=undelivered",
      "?label=split%3Dtrain&turns=>5",
      "tasks",
      "rollout?id=ses5000",
      "tokens?id=ses5000",
      "group?task=task7&group=task7-g0",
    ]) {
      const { ms, kB } = await view.get(path);
      console.log(`${path === "" ? "the run" : path}: ${ms.toFixed(0)} ms, ${kB.toFixed(0)} kB`);
    }
    console.log(`server then: ${await view.memory()}`);
  }
  await using view = await openView(join(folder, "long"));
  for (const path of ["rollout?id=ses0", "tokens?id=ses0", "tokens?id=ses0&from=100000"]) {
    const { ms, kB } = await view.get(path);
    console.log(`200 turns, 200 000 tokens, ${path}: ${ms.toFixed(0)} ms, ${kB.toFixed(0)} kB`);
  }
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
    memory: async () => {
      const status = await readFile(`/proc/${child.pid}/status`, "utf8");
      const [now, most] = ["VmRSS", "VmHWM"].map((name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1] ?? 0) / 1e3);
      return `${now?.toFixed(0)} MB, at most ${most?.toFixed(0)} MB`;
    },
    /** Seconds of all its threads, which other work on the machine does not change much. */
    cpu: async () => {
      const fields = (await readFile(`/proc/${child.pid}/stat`, "utf8")).split(") ")[1]?.split(" ") ?? [];
      return ((Number(fields[11]) + Number(fields[12])) / 100).toFixed(2);
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGINT");
      await once(child, "exit");
    },
  };
}
