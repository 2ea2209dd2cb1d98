/** How fast `alidade view` answers for a run of 10 000 rollouts: `node bench/view.ts`. */
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeViewedRun } from "../test/fakes/records/viewed-run.ts";
import { openView } from "../view/server/index.ts";

const key = "sk-ali-bench";
const folder = await mkdtemp(join(tmpdir(), "alidade-view-"));
try {
  const tasks = Array.from({ length: 125 }, (_, at) => ({ task_id: `task${at}`, rewards: [1, 0, 0, at % 3 === 0 ? null : 0, 1, 0, 0, 1] }));
  await writeViewedRun(folder, tasks, { groups: 10, turns: 6, words: 30 });
  await writeViewedRun(join(folder, "long"), [{ task_id: "long", rewards: [1] }], { turns: 200, words: 1000 });
  const { size } = await stat(join(folder, "trajectories.jsonl"));
  console.log(`10 000 rollouts, ${(size / 1e6).toFixed(0)} MB`);
  for (const what of ["without an index", "with an index"]) {
    const began = performance.now();
    await using view = await openView({ folder, port: 0, key, workOf: async () => null });
    const get = async (path: string) => {
      const from = performance.now();
      const text = await (await fetch(`${view.url}/${path}`, { headers: { authorization: `Bearer ${key}` } })).text();
      return { ms: performance.now() - from, kB: text.length / 1000 };
    };
    await get("");
    console.log(`${what}: first page after ${((performance.now() - began) / 1000).toFixed(2)} s`);
    if (what === "without an index") continue;
    for (const path of [
      "",
      "?reward=0",
      "?task=task7*&reward=1",
      "?reason=undelivered",
      "tasks",
      "rollout?id=ses5000",
      "tokens?id=ses5000",
      "group?task=task7&group=task7-g0",
    ]) {
      const { ms, kB } = await get(path);
      console.log(`${path === "" ? "the run" : path}: ${ms.toFixed(0)} ms, ${kB.toFixed(0)} kB`);
    }
    console.log(`server: ${(process.memoryUsage().rss / 1e6).toFixed(0)} MB (this process also made the run)`);
  }
  await using view = await openView({ folder: join(folder, "long"), port: 0, key, workOf: async () => null });
  const { fidelity } = await view.reader.trajectory("ses0");
  for (const path of ["rollout?id=ses0", "tokens?id=ses0"]) {
    const from = performance.now();
    await (await fetch(`${view.url}/${path}`, { headers: { authorization: `Bearer ${key}` } })).text();
    console.log(`${fidelity.calls} turns, ${fidelity.sampled_tokens} sampled tokens, ${path}: ${(performance.now() - from).toFixed(0)} ms`);
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
