/** Tasks chosen by how often they were passed in earlier runs. */
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../../fakes/processes/cli.ts";
import { goldenTrajectory } from "../../fakes/records/golden-session.ts";

const scratch = scratchFolder("pass-rate");

/** Rewards of each task, in the order of its rollouts. */
async function runOf(name: string, rewards: Record<string, (number | null)[]>): Promise<string> {
  const folder = join(scratch, name);
  await mkdir(join(folder, "sessions"), { recursive: true });
  const golden = goldenTrajectory();
  const lines = Object.entries(rewards).flatMap(([id, all]) =>
    all.map((reward, at) => {
      const rollout_id = `${id}${at}`;
      return JSON.stringify({ ...golden, rollout_id, session_id: `ses${name}${rollout_id}`, task: { ...golden.task, id }, reward });
    }),
  );
  await writeFile(join(folder, "trajectories.jsonl"), lines.map((line) => `${line}\n`).join(""));
  return folder;
}

async function tasksNamed(...ids: string[]): Promise<string> {
  const file = join(scratch, "tasks.jsonl");
  const task = (task_id: string) => ({ task_id, instruction: "Do it.", grader: { kind: "script", command: ["true"] } });
  await writeFile(file, ids.map((id) => `${JSON.stringify(task(id))}\n`).join(""));
  return file;
}

type Listed = { task_sets: { tasks: { task_id: string }[] }[] };

test("tasks are chosen by their measured pass rate over several runs; one without a measured reward is told, and is never a 0", async () => {
  const first = await runOf("first", { easy: [1, 1], some: [1, 0], hard: [0, 0], broken: [null, null] });
  const second = await runOf("second", { hard: [0, 0, 0, 0, 0, 0, 0, 1], easy: [1] });
  const tasks = await tasksNamed("easy", "some", "hard", "broken", "unseen");
  const chosen = async (...flags: string[]) => {
    const result = await cli(["tasks", "list", tasks, "--json", ...flags]);
    return { ids: jsonOf<Listed>(result).task_sets.flatMap((set) => set.tasks.map(({ task_id }) => task_id)), said: result.stderr };
  };
  const one = await chosen("--pass-rate", "0.1..0.9", "--of", first);
  assert.deepEqual(one.ids, ["some"]);
  assert.match(
    one.said,
    /1 of 5 tasks are taken, 2 lie outside, 2 have no measured reward there and are left out; --with-unmeasured takes them \(broken, unseen\)/,
  );
  assert.deepEqual((await chosen("--pass-rate", "0.1..0.9", "--of", first, "--of", second)).ids, ["some", "hard"]);
  assert.deepEqual((await chosen("--pass-rate", "0..0", "--of", first)).ids, ["hard"], "unknown is not 0");
  assert.deepEqual((await chosen("--pass-rate", "0..0.5", "--of", first)).ids, ["some", "hard"], "both ends belong to it");
  assert.deepEqual((await chosen("--pass-rate", "1..1", "--of", first, "--pass", "0")).ids, ["easy", "some", "hard"]);
  const more = await chosen("--pass-rate", "0.1..0.9", "--of", first, "--with-unmeasured");
  assert.deepEqual(more.ids, ["some", "broken", "unseen"]);
  assert.match(more.said, /3 of 5 tasks are taken, 2 lie outside, 2 have no measured reward there and are taken/);
  const parts = await Promise.all(["1/2", "2/2"].map((part) => chosen("--pass-rate", "0..0.9", "--of", first, "--shard", part)));
  assert.deepEqual(
    parts.map(({ ids }) => ids),
    [["some"], ["hard"]],
    "parts are made of what was taken",
  );
});

test("a pass rate that cannot be meant is one sentence with field and value", async () => {
  const run = await runOf("refused", { easy: [1] });
  const tasks = await tasksNamed("easy");
  for (const [flags, message] of [
    [
      ["--pass-rate", "0.9..0.1", "--of", run],
      /--pass-rate is "0\.9\.\.0\.1": give two numbers from 0 to 1, the lesser one first, as in 0\.1\.\.0\.9$/m,
    ],
    [["--pass-rate", "10..90", "--of", run], /--pass-rate is "10\.\.90": give two numbers/],
    [["--pass-rate", "0.1..0.9"], /pass_rate is 0\.1\.\.0\.9 and of is missing: name an earlier run by --of$/m],
    [["--of", run], /of is \[".*refused"\] without pass_rate, which it belongs to/],
    [
      ["--pass-rate", "0..1", "--of", join(scratch, "nowhere")],
      /of is ".*nowhere": there is no folder .*nowhere; name the folder of a run$/m,
    ],
    [
      ["--pass-rate", "0..1", "--of", `set${"a".repeat(20)}`],
      /of is "seta+": the id of a set goes with --service; name the folder of a run$/m,
    ],
  ] as const) {
    const { code, stderr } = await cli(["tasks", "list", tasks, ...flags]);
    assert.deepEqual([code, message.test(stderr)], [2, true], stderr);
  }
});

test("stats says of each task how many samples were graded, how many passed, and an interval within 0 to 1", async () => {
  const run = await runOf("stats", { some: [1, 0, null], easy: [1, 1], broken: [null] });
  type Row = {
    key: string;
    measured: number;
    passed: number;
    pass_rate: number | null;
    pass_interval: { low: number; high: number } | null;
  };
  const { statistics } = jsonOf<{ statistics: Row[] }>(await cli(["stats", "--run", run, "--by", "task", "-k", "2", "--json"]));
  const rows = new Map(statistics.map((row) => [row.key, row]));
  const told = (key: string) => [rows.get(key)?.measured, rows.get(key)?.passed, rows.get(key)?.pass_rate];
  assert.deepEqual(
    [told("some"), told("easy"), told("broken")],
    [
      [2, 1, 0.5],
      [2, 2, 1],
      [0, 0, null],
    ],
  );
  const { low, high } = rows.get("easy")?.pass_interval ?? assert.fail();
  assert.deepEqual([low > 0 && low < 1, high], [true, 1]);
  assert.equal(rows.get("broken")?.pass_interval, null);
});
