import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import type { StepFigures } from "../../../service/figures/index.ts";
import { cli, jsonOf } from "../../fakes/processes/cli.ts";
import { goldenTrajectory } from "../../fakes/records/golden-session.ts";
import { LogBuilder, user } from "../../fakes/records/log-builder.ts";

const record = (rollout_id: string, fields: Partial<RolloutRecord>): RolloutRecord => ({
  schema_version: 1,
  rollout_id,
  attempt: 1,
  task_id: "slug",
  task_hash: "h",
  group_id: "grp",
  group_size: 2,
  sample_index: 0,
  harness: "pi",
  harness_version: null,
  state: "done",
  session_id: `ses${rollout_id}`,
  stop_reason: "exited",
  exit_code: 0,
  verdict: null,
  revision: 1,
  error: null,
  mask_reason: null,
  sandbox: null,
  setup: null,
  services: null,
  steps: [],
  work: null,
  network: null,
  forked_from: null,
  replay: null,
  resume: null,
  user: null,
  times: { queued: 0, run: 1000, done: 3500 },
  output_tail: null,
  summary: null,
  ...fields,
});

/** Task slug: a (reward 1), b (first attempt broken, second reward 0), c in flight; task wide: d (reward 0.5); an SDK's session. */
async function run(t: TestContext): Promise<{ out: string; folder: string }> {
  const out = await mkdtemp(join(tmpdir(), "alidade-ls-"));
  t.after(() => rm(out, { recursive: true }));
  const folder = join(out, "run1");
  await mkdir(join(folder, "sessions"), { recursive: true });
  const golden = goldenTrajectory();
  const told = (rollout_id: string, attempt: number, task: string, reward: number | null, facts = {}): string =>
    `${JSON.stringify({ ...golden, rollout_id, attempt, session_id: `ses${rollout_id}${attempt}`, task: { ...golden.task, id: task }, reward, ...facts })}\n`;
  await writeFile(
    join(folder, "trajectories.jsonl"),
    told("a", 1, "slug", 1, { labels: { split: "held-out" } }) +
      told("b", 1, "slug", null) +
      told("b", 2, "slug", 0) +
      told("d", 1, "wide", 0.5),
  );
  const error = { code: "engine_unreachable", message: "gone", status: null };
  const records = [
    record("a", { session_id: "sesa1" }),
    record("b", { session_id: "sesb1", error, mask_reason: "engine_unreachable" }),
    record("b", { session_id: "sesb2", attempt: 2 }),
    record("c", { state: "run", stop_reason: null }),
  ];
  await writeFile(join(folder, "rollouts.jsonl"), records.map((one) => `${JSON.stringify(one)}\n`).join(""));
  const log = new LogBuilder({ rollout_id: null, task_id: null, group_id: null });
  log.call({ messages: [user("hi")] });
  const lines = log.entries.map((entry) => `${JSON.stringify(entry)}\n`).join("");
  await writeFile(join(folder, "sessions", "seslive.jsonl"), lines.replaceAll("sestest", "seslive"));
  return { out, folder };
}

test("ls lists runs, rollouts by their last attempt, and every session; filters leave the others out", async (t) => {
  const { out, folder } = await run(t);
  const runs = jsonOf<{ runs: Record<string, unknown>[] }>(await cli(["ls", "--out", out, "--json"])).runs;
  assert.deepEqual(runs.length, 1);
  assert.deepEqual(
    [runs[0]?.run, runs[0]?.rollouts, runs[0]?.over, runs[0]?.tasks, runs[0]?.mean_reward, runs[0]?.sessions],
    [folder, 5, 4, 2, 0.5, 6],
  );
  const listed = async (...args: string[]) => {
    const { rollouts } = jsonOf<{ rollouts: { rollout_id: string; attempt: number }[] }>(
      await cli(["ls", "--run", folder, "--json", ...args]),
    );
    return rollouts.map(({ rollout_id, attempt }) => `${rollout_id}${attempt}`).join(" ");
  };
  assert.equal(await listed(), "a1 b2 d1 c1 null1");
  assert.equal(await listed("--task", "s*g"), "a1 b2 c1");
  assert.equal(await listed("--reward", ">=0.5"), "a1 d1");
  assert.equal(await listed("--reward", "0"), "b2");
  assert.equal(await listed("--reward", "none"), "c1 null1");
  assert.equal(await listed("--end", "exit*"), "a1 b2");
  assert.equal(await listed("--end", "run"), "c1");
  assert.equal(await listed("--label", "split=held*"), "a1");
  assert.equal(await listed("--label", "constructor=*"), "");
  const { sessions } = jsonOf<{ sessions: { session_id: string; end: string }[] }>(
    await cli(["ls", "sessions", "--run", folder, "--end", "engine*", "--json"]),
  );
  assert.deepEqual(
    sessions.map(({ session_id }) => session_id),
    ["sesb1"],
  );
  const { stdout } = await cli(["ls", "rollouts", "--run", folder]);
  assert.match(stdout, /^a +slug +0 +done +1 +6 .* 2\.5 +exited +split=held-out$/m);
  const wrong = await cli(["ls", "--reward", "high"]);
  assert.deepEqual([wrong.code, /give a number/.test(wrong.stderr)], [2, true]);
});

test("stats gives mean reward and pass@k over tasks, by task, policy and label, as a table, CSV and JSON", async (t) => {
  const { folder } = await run(t);
  type Row = { by: string; key: string | null; tasks: number; rollouts: number; measured: number; mean_reward: number | null };
  type Told = { statistics: (Row & { pass_at_k: { k: number; value: number }[] })[] };
  const { statistics } = jsonOf<Told>(await cli(["stats", "--run", folder, "--json"]));
  const [all, slug, wide] = statistics;
  assert.deepEqual(
    [all, slug, wide].map((row) => [row?.key, row?.rollouts, row?.measured, row?.mean_reward, row?.pass_at_k[0]?.value]),
    [
      [null, 5, 3, 0.5, 0.25],
      ["slug", 3, 2, 0.5, 0.5],
      ["wide", 1, 1, 0.5, 0],
    ],
    "each task weighs the same, and what was not measured is in no mean",
  );
  assert.deepEqual(
    slug?.pass_at_k.map(({ k, value }) => [k, value]),
    [
      [1, 0.5],
      [2, 1],
    ],
  );
  assert.ok(statistics.some(({ by, key }) => by === "policy" && key === "v1, step 1, v2, step 2"));
  const csv = (await cli(["stats", "--run", folder, "--csv", "--by", "label:split", "-k", "1"])).stdout.split("\n");
  assert.equal(csv[0], "by,key,tasks,rollouts,measured,mean_reward,mean_reward_low,mean_reward_high,pass@1,pass@1_low,pass@1_high");
  assert.match(csv[2] ?? "", /^label:split,held-out,1,1,1,1,,,1,0\.2065\d+,1$/);
  assert.match((await cli(["stats", "--run", folder])).stdout, /^all +2|3 +5 +3 +0\.5/m);
});

test("stats has a run's figures by policy step: each rollout by its last attempt, and none that is not over", async (t) => {
  const { folder } = await run(t);
  const { steps } = jsonOf<{ steps: StepFigures[] }>(await cli(["stats", "--run", folder, "--figures", "--json"]));
  assert.deepEqual(
    steps.map(({ policy_step, results, figures }) => [policy_step, results, figures.pass_ratio.whole, figures.null_ratio.part]),
    [
      [1, 1, 0, 1],
      [2, 3, 3, 0],
    ],
  );
  const { figures } = steps[1] as StepFigures;
  assert.equal(figures.pass_ratio.value, 1 / 3);
  assert.equal(figures.no_variance_ratio.whole, 0, "no group is there whole");
  const { row_inflation } = goldenTrajectory().fidelity;
  assert.equal(figures.row_inflation.value, row_inflation);
  assert.deepEqual([figures.stale_ratio.value, typeof figures.stale_ratio.reason], [null, "string"]);
  const of = jsonOf<{ steps: StepFigures[] }>(await cli(["stats", "--run", folder, "--figures", "--json", "--task", "wide"]));
  assert.deepEqual(
    of.steps.filter(({ policy_step }) => policy_step === 2).map(({ results }) => results),
    [1],
  );
  assert.match((await cli(["stats", "--run", folder, "--figures"])).stdout, /^2 +3 +0\.333/m);
});
