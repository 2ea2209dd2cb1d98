/** How formats that compare rewards keep the places of rollouts: dummies, gaps, forks, attempts and groups out of order. */
import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { test } from "node:test";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { exportTrajectories } from "../../exporters/export-trajectories.ts";
import { exporterNamed } from "../../exporters/registry.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import { exported } from "../fakes/records/exported.ts";
import { goldenSibling, goldenTrajectory } from "../fakes/records/golden-session.ts";
import { assistant, LogBuilder, user } from "../fakes/records/log-builder.ts";
import { pictureBytes, picturedGroup } from "../fakes/records/pictured-group.ts";

type Facts = Parameters<typeof reconstruct>[1];

/** A rollout that says its own name; its id, group and sample index are in the name: `b1` is the second of group b. */
function rollout(name: string, facts: Facts = {}, over: { text_only?: boolean; attempt?: number; size?: number } = {}): Trajectory {
  const [group = "", index = ""] = name;
  const log = new LogBuilder({ rollout_id: name, group_id: group, sample_index: Number(index), attempt: over.attempt ?? 1 });
  const [opened] = log.entries;
  if (opened?.type === "opened") opened.session_id = `ses${name}${over.attempt ?? 1}`;
  log.call({ messages: [user(group)], says: assistant(`${name} speaks`), ...(over.text_only ? { prompt: null } : {}) });
  return reconstruct(log.entries, { status: "graded", reward: Number(index) % 2, group: { size: over.size ?? 2 }, ...facts });
}

const masked: Facts = { in_loss: false, in_baseline: true, mask_reason: "budget_spent" };
const broken: Facts = { status: "failed", reward: null, in_loss: false, in_baseline: false };

const written = (format: string, trajectories: Trajectory[], own: Record<string, unknown> = {}) =>
  exported(exporterNamed(format), trajectories, { own });

test("groups come one after the other, by sample index, however their rollouts ended", async () => {
  const { rows } = await written("trl-grpo", [rollout("a1"), rollout("b1"), rollout("b0"), rollout("a0")]);
  assert.deepEqual(
    rows.map((row) => [row.rollout_id, row.group_index, row.position]),
    [
      ["a0", 0, 0],
      ["a1", 0, 1],
      ["b0", 1, 0],
      ["b1", 1, 1],
    ],
  );
});

test("of a rollout that was run again the last attempt counts", async () => {
  const { rows, report } = await written("slime", [rollout("a0", broken), rollout("a1"), rollout("a0", {}, { attempt: 2 })]);
  assert.deepEqual(
    rows.map((row) => [row.reward, row.rollout_id]),
    [
      [0, 0],
      [1, 1],
    ],
  );
  assert.deepEqual(report.left_out_rollouts, { superseded: 1 });
});

const ofMasked: [string, (row: Record<string, unknown>) => unknown][] = [
  ["verl", (row) => [row.reward_score, row.response_mask]],
  ["slime", (row) => [row.reward, row.loss_mask, row.remove_sample]],
  ["miles", (row) => [row.reward, row.loss_mask, row.remove_sample]],
  ["trl-grpo", (row) => [row.reward, row.env_mask]],
  ["nemo-rl", (row) => [row.total_reward, row.loss_multiplier]],
  ["nemo-gym", (row) => [row.reward, row.instance_config]],
];
for (const [format, look] of ofMasked)
  test(`${format}: a rollout that is only in the baseline is a dummy row with its reward`, async () => {
    const { rows, report } = await written(format, [rollout("a0"), rollout("a1", masked)]);
    assert.deepEqual([report.rows, report.dummy_rows, report.left_out.masked_rollout], [2, 1, 1]);
    const want: Record<string, unknown> = {
      slime: [1, [0], true],
      miles: [1, [0], true],
      "nemo-rl": [1, 0],
      "nemo-gym": [1, { mask_sample: true }],
    };
    assert.deepEqual(look(rows[1] ?? {}), want[format] ?? [1, [0]]);
  });

test("verl: a dummy row was sampled by the weights that sampled its rollout", async () => {
  const { rows } = await written("verl", [rollout("a0"), rollout("a1", masked)]);
  assert.deepEqual(
    rows.map((row) => [row.min_global_steps, row.max_global_steps]),
    [
      [1, 1],
      [1, 1],
    ],
  );
});

for (const format of ["flat", "verl"])
  test(`${format}: the rows of a rollout that forked weigh as one where the trainer averages rows`, async () => {
    const weights = async (own: Record<string, unknown>) =>
      (await written(format, [goldenTrajectory(), goldenSibling()], own)).rows.map((row) => row.weight);
    assert.deepEqual(await weights({}), [1, 1, 1, 1]);
    // 2, 12 and 2 of the rollout's 16 trained tokens.
    assert.deepEqual(await weights({ aggregation: "sequence_mean" }), [0.125, 0.75, 0.125, 1]);
  });

test("a dummy row's tokens are the prompt that the rollout really had", async () => {
  const { rows } = await written("trl-grpo", [rollout("a0"), rollout("a1", masked)]);
  const [whole, dummy] = rows as { prompt_ids: number[]; completion_ids: number[] }[];
  assert.deepEqual([...(dummy?.prompt_ids ?? []), ...(dummy?.completion_ids ?? [])], whole?.prompt_ids);
});

test("trl-grpo fills the place of a rollout that was not measured with a row of reward null", async () => {
  const { rows, report } = await written("trl-grpo", [rollout("a0", broken), rollout("a1")]);
  assert.deepEqual(
    rows.map((row) => [row.reward, row.position, row.rollout_id, Math.max(...(row.env_mask as number[]))]),
    [
      [1, 0, "a1", 1],
      [null, 1, null, 0],
    ],
  );
  assert.deepEqual([report.dummy_rows, report.left_out_rollouts], [1, { no_reward: 1 }]);
});

for (const format of ["nemo-rl", "nemo-gym"])
  test(`${format} leaves out a group with a rollout that was not measured, and says so`, async () => {
    const { rows, report } = await written(format, [rollout("a0", broken), rollout("a1"), rollout("b0"), rollout("b1")]);
    assert.equal(rows.length, 2);
    assert.deepEqual(report.left_out_groups, { incomplete: 1 });
    assert.deepEqual(report.left_out_rollouts, { no_reward: 1, group_left_out: 1 });
    assert.equal(report.dummy_rows, 0);
  });

test("a smaller group size takes the first rollouts that were measured", async () => {
  const group = [rollout("a0", broken), rollout("a1"), rollout("a2"), rollout("a3")];
  const { rows, report } = await written("nemo-rl", group, { group_size: 2 });
  assert.deepEqual(
    rows.map((row) => (row.extra_env_info as { rollout_id: string }).rollout_id),
    ["a1", "a2"],
  );
  assert.deepEqual(report.left_out_rollouts, { no_reward: 1, over_group_size: 1 });
});

test("a group in which nothing is trained is not written", async () => {
  const { rows, report } = await written("trl-grpo", [rollout("a0", masked), rollout("a1", masked)]);
  assert.deepEqual([rows, report.left_out_groups], [[], { nothing_trained: 1 }]);
});

test("a rollout outside the baseline is in no format that computes one from rows", async () => {
  const outside: Facts = { in_baseline: false };
  for (const format of ["verl", "slime", "verifiers"]) {
    const { rows, report } = await written(format, [rollout("a0"), rollout("a1", outside)]);
    assert.deepEqual([format, rows.length, report.left_out_rollouts], [format, 1, { not_in_baseline: 1 }]);
  }
});

test("a rollout without token ids has no dummy row, for its prompt is unknown", async () => {
  const { report } = await written("verl", [rollout("a0"), rollout("a1", {}, { text_only: true })]);
  assert.deepEqual([report.rows, report.left_out_rollouts, report.left_out], [1, { no_token_ids: 1 }, { no_token_ids: 1 }]);
});

test("an advantage counts a rollout that trains nothing, and one that stands alone has none", async () => {
  const { rows, report } = await written("prime-rl", [rollout("a0"), rollout("a1", masked), rollout("b1")], { advantage: "dr_grpo" });
  assert.deepEqual(
    rows.map((row) => (row.advantages as number[]).at(-1)),
    [-0.5],
  );
  assert.deepEqual(report.left_out_rollouts, { not_in_loss: 1, no_baseline: 1 });
});

test("trl-async leaves out rows without a recorded step of the policy, unless it is given", async () => {
  const nameless = (name: string): Trajectory => {
    const whole = rollout(name);
    return { ...whole, calls: whole.calls.map((call) => ({ ...call, policy: { start: null, end: null, spans: [], check: null } })) };
  };
  const group = [nameless("a0"), nameless("a1")];
  const { rows, report } = await written("trl-async", group);
  assert.deepEqual([rows, report.left_out], [[], { no_policy_step: 2 }]);
  assert.deepEqual(
    (await written("trl-async", group, { model_version: 7 })).rows.map((row) => row.model_version),
    [7, 7],
  );
});

test("a cut-off rule changes the reward in pairs, advantages and rows alike", async () => {
  const cut = rollout("a1", { status: "cut", stop_reason: "budget_spent", reward: 1 });
  const options = { cutOff: { budget_spent: { action: "penalise", by: 3 } as const } };
  const group = [rollout("a0"), cut];
  const advantages = await exported(exporterNamed("prime-rl"), group, { ...options, own: { advantage: "dr_grpo" } });
  assert.deepEqual(
    advantages.rows.map((row) => (row.advantages as number[]).at(-1)),
    [1, -1],
  );
  const pair = (await exported(exporterNamed("dpo"), group, options)).rows[0];
  assert.deepEqual([pair?.chosen_rollout_id, pair?.chosen_reward, pair?.rejected_reward], ["a0", 0, -2]);
  const rows = (await exported(exporterNamed("verl"), group, options)).rows;
  assert.deepEqual(
    rows.map((row) => row.reward_score),
    [0, -2],
  );
  const said: [string, (row: Record<string, unknown>) => unknown][] = [
    ["openenv", (row) => row.reward],
    ["harbor", (row) => (row.verifier_result as { rewards: { reward: number } }).rewards.reward],
    ["atif", (row) => (row.extra as { reward: number }).reward],
    ["chat", (row) => row.reward],
  ];
  for (const [name, rewardOf] of said) {
    const lines = (await exported(exporterNamed(name), group, options)).rows;
    assert.deepEqual([...new Set(lines.map(rewardOf))], [0, -2], name);
  }
  for (const name of ["chat", "trl-sft"]) {
    const { report } = await exported(exporterNamed(name), group, { ...options, own: { min_reward: 0 } });
    assert.deepEqual(report.left_out_rollouts, { low_reward: 1 }, name);
  }
  const masked = await exported(exporterNamed("chat"), group, { cutOff: { budget_spent: { action: "mask" } } });
  assert.deepEqual(new Set(masked.rows.map(({ rollout_id }) => rollout_id)), new Set(["a0"]));
  await assert.rejects(exported(exporterNamed("canonical"), group, options), /leave out --cut-off/);
});

test("pairs: all of a group, none without a difference, none beyond the gap", async () => {
  const group = ["a0", "a1", "a2"].map((name) => rollout(name, { reward: Number(name[1]) }));
  const pairs = async (trajectories: Trajectory[], own: Record<string, unknown>) => {
    const { rows, report } = await written("dpo", trajectories, own);
    return [rows.map((row) => `${row.chosen_rollout_id} ${row.rejected_rollout_id}`), report.left_out_groups];
  };
  assert.deepEqual(await pairs(group, {}), [["a2 a0"], {}]);
  assert.deepEqual(await pairs(group, { pairs: "all" }), [["a2 a1", "a2 a0", "a1 a0"], {}]);
  assert.deepEqual(await pairs(group, { pairs: "all", min_gap: 1 }), [["a2 a0"], {}]);
  assert.deepEqual(await pairs([rollout("a0"), rollout("a2")], {}), [[], { no_preference: 1 }]);
});

test("imitation takes only rollouts that are good enough, where that is asked", async () => {
  const group = [rollout("a0"), rollout("a1"), rollout("a2", { reward: null })];
  for (const format of ["chat", "trl-sft"]) {
    const { rows, report } = await written(format, group, { min_reward: 0.5 });
    assert.deepEqual([rows.map((row) => row.rollout_id), report.left_out_rollouts], [["a1"], { low_reward: 1, no_reward: 1 }]);
  }
});

test("the copy of the run that groups are read from leaves nothing behind, also after a failure", async (t) => {
  const scratch = await mkdtemp(join(tmpdir(), "alidade-scratch-"));
  t.after(() => rm(scratch, { recursive: true }));
  const group = [rollout("a0"), rollout("a1")];
  let during: string[] | null = null;
  async function* source(): AsyncIterable<Trajectory> {
    yield* group;
    during = await readdir(scratch);
  }
  const sink = new Writable({ write: (_chunk, _encoding, done) => done() });
  await exportTrajectories(exporterNamed("slime"), source(), sink, { scratch });
  assert.deepEqual([during, await readdir(scratch)], [[], []]);
  const failing = new Writable({ write: (_chunk, _encoding, done) => done(new Error("disk full")) });
  await assert.rejects(exportTrajectories(exporterNamed("slime"), group, failing, { scratch }), /disk full/);
  assert.deepEqual(await readdir(scratch), []);
});

test("trl-dpo gives no ids of a turn that saw a picture, for its trainer would read the pads as text", async () => {
  const { rows } = await exported(exporterNamed("trl-dpo"), picturedGroup(), { media: pictureBytes });
  assert.deepEqual(
    rows.map(({ prompt_ids, chosen_ids, rejected_ids }) => [prompt_ids, chosen_ids, rejected_ids]),
    [[null, null, null]],
  );
  assert.match(JSON.stringify(rows[0]?.prompt), /data:image\/png;base64,/);
});

test("options about rows are refused where a format has none", async () => {
  await assert.rejects(exported(exporterNamed("chat"), [rollout("a0")], { maxTokens: 5 }), { code: "config_invalid", param: "maxTokens" });
});

/** Two turns: `first`, which a fork has from the chain's record, and a second one behind the same result. */
function leaf(sample_index: number, second: string, reward: number, isFork: boolean, vocabulary: Map<string, number>): Trajectory {
  const log = new LogBuilder({ rollout_id: `r${sample_index}`, group_id: "tree", sample_index }, vocabulary);
  const [begin, look] = [[user("mend it")], assistant("I look")];
  const first = log.call({ messages: begin, says: look, ...(isFork && { replayed_from: "call00000000000000000000" }) });
  log.call({ messages: [...begin, look, user("a file")], says: assistant(second), parent: first });
  const trajectory = reconstruct(log.entries, { status: "graded", reward, group: { size: 3 } });
  return { ...trajectory, session_id: `ses${sample_index}`, trajectory_id: `traj${sample_index}` };
}

test("a fork is compared with the rollout that it forks, and with other forks of it, from the turn behind which it begins", async () => {
  const vocabulary = new Map<string, number>();
  const chain = leaf(0, "no idea", 0.5, false, vocabulary);
  const [good, bad] = [leaf(1, "mended", 1, true, vocabulary), leaf(2, "broken", 0, true, vocabulary)];
  for (const [members, texts] of [
    [
      [chain, good],
      ["mended", "no idea"],
    ],
    [
      [chain, bad],
      ["no idea", "broken"],
    ],
    [
      [good, bad],
      ["mended", "broken"],
    ],
  ] as const) {
    const whole = await written("dpo", [...members]);
    const [row] = whole.rows as { prompt: { content: string }[]; chosen: { content: string }[]; rejected: { content: string }[] }[];
    assert.deepEqual([whole.report.rows, whole.report.left_out_groups], [1, {}]);
    assert.deepEqual(
      row?.prompt.map(({ content }) => content),
      ["mend it", "I look", "a file"],
    );
    assert.deepEqual(
      [row?.chosen, row?.rejected].map((side) => side?.map(({ content }) => content)),
      [[texts[0]], [texts[1]]],
    );
    const turn = (await written("trl-dpo", [...members])).rows[0] as { prompt_ids: number[] | null; prompt: unknown[] };
    assert.equal(turn.prompt.length, 3);
    assert.ok((turn.prompt_ids?.length ?? 0) > 0, "both were sampled on the same ids");
  }
});
