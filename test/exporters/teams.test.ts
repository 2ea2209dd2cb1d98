/** The agents of a team are sessions of one rollout: all of them leave, with one reward and one entry in the baseline. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RewardComponent } from "../../base/schema/reward-component.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { exporterNamed, exporters } from "../../exporters/registry.ts";
import { joinMembers, reconstruct, type SelectOptions, selectRows, verifyRows } from "../../reconstruct/index.ts";
import { exported } from "../fakes/records/exported.ts";
import { assistant, LogBuilder, user } from "../fakes/records/log-builder.ts";

type Given = { reward?: number | null; reward_components?: RewardComponent[]; begin?: number; calls?: number } & Partial<SessionSpec>;

/** Session `ses<rollout><member>`, which says its own name. */
function session(
  rollout_id: string,
  member: string | null,
  { reward = null, reward_components = [], begin = 2_000, calls = 1, ...spec }: Given = {},
): Trajectory {
  const log = new LogBuilder({ rollout_id, group_id: "g", sample_index: Number(rollout_id.at(-1)), member, ...spec });
  const [opened] = log.entries;
  const name = `${rollout_id}${member ?? ""}`;
  if (opened?.type === "opened") opened.session_id = `ses${name}${spec.attempt ?? 1}`;
  if (calls > 0) log.call({ messages: [user("solve it")], says: assistant(`${name} speaks`), begin, finish: begin + 1 });
  for (const entry of log.entries) if ("call_id" in entry) entry.call_id += name;
  return reconstruct(log.entries, { reward, reward_components });
}

const written = (format: string, trajectories: Trajectory[], options: Partial<SelectOptions> & { own?: Record<string, unknown> } = {}) =>
  exported(exporterNamed(format), trajectories, options);

/** Two rollouts of one group; the members come in no order, and the reward was given to one of each team. */
const teams = (): Trajectory[] => [
  session("r1", "coder", { begin: 3_000 }),
  session("r0", "planner", { reward: 1 }),
  session("r1", "planner", { reward: 0 }),
  session("r0", "coder", { begin: 3_000 }),
];

/** Formats that say words. */
const textual = ["chat", "dpo", "trl-dpo", "atif", "verifiers", "nemo-gym"];

/** Formats with one row a rollout, as for any rollout in several rows. */
const oneRow = ["trl-grpo", "nemo-rl", "nemo-gym", "openrlhf", "areal"];

for (const exporter of exporters)
  test(`${exporter.name}: a team leaves whole, and no member replaces another`, async () => {
    const own = exporter.name === "areal" || exporter.name === "openrlhf" ? { group_size: 2 } : {};
    const { report, rows } = await exported(exporter, teams(), { own });
    assert.deepEqual([report.left_out_rollouts, report.left_out_groups], [{}, {}]);
    assert.deepEqual(report.left_out, oneRow.includes(exporter.name) ? { other_row_of_rollout: 2 } : {});
    if (exporter.name === "canonical") assert.deepEqual(rows.map((row) => row.member).toSorted(), ["coder", "coder", "planner", "planner"]);
    if (textual.includes(exporter.name) && !oneRow.includes(exporter.name))
      for (const member of ["planner", "coder"]) assert.match(JSON.stringify(rows), new RegExp(`r0${member} speaks`));
  });

test("the rows of all members have the rollout's reward, and its agents are the members", async () => {
  const { rows } = await written("flat", teams());
  assert.deepEqual(rows.map((row) => [row.rollout_id, row.agent, row.reward]).toSorted(), [
    ["r0", "coder", 1],
    ["r0", "planner", 1],
    ["r1", "coder", 0],
    ["r1", "planner", 0],
  ]);
  assert.equal(new Set(rows.filter((row) => row.rollout_id === "r0").map((row) => row.trajectory_id)).size, 1);
});

test("a team is one entry in its group's baseline, beside rollouts of one session", async () => {
  const group = [...teams(), session("r2", null, { reward: 1 })];
  const { rows } = await written("prime-rl", group, { own: { advantage: "dr_grpo" } });
  const third = 1 / 3;
  const near = (value: unknown) => Math.round(Number(value) * 1e9) / 1e9;
  const advantages = rows.map((row) => near([row.advantages ?? row.advantage].flat().find((one) => one !== 0 && one !== null)));
  assert.deepEqual(advantages.toSorted(), [third, third, third, -2 * third, -2 * third].map(near).toSorted());
});

test("verl and slime count the rows of a team as one rollout", async () => {
  const verl = (await written("verl", teams())).rows;
  assert.deepEqual(new Set(verl.map((row) => row.key)), new Set(["g_0_0", "g_0_1", "g_1_0", "g_1_1"]));
  const slime = (await written("slime", teams())).rows;
  assert.deepEqual(
    slime.map((row) => [row.reward, row.rollout_id]),
    [
      [1, 0],
      [1, 0],
      [0, 1],
      [0, 1],
    ],
  );
});

test("of a team that was run again the last attempt leaves, with the members that are in it", async () => {
  const again = [...teams(), session("r0", "planner", { reward: 1, attempt: 2 })];
  const { rows, report } = await written("flat", again);
  assert.deepEqual(report.left_out_rollouts, { superseded: 2 });
  assert.deepEqual(rows.map((row) => [row.rollout_id, row.agent, row.attempt]).toSorted(), [
    ["r0", "planner", 2],
    ["r1", "coder", 1],
    ["r1", "planner", 1],
  ]);
});

test("a team whose members were given different rewards has none, and says so", async () => {
  const disagree = [session("r0", "planner", { reward: 1 }), session("r0", "coder", { reward: 0 })];
  const joined = joinMembers(disagree);
  assert.deepEqual([joined.reward, joined.in_loss, joined.in_baseline, joined.mask_reason], [null, false, false, "members_disagree"]);
  assert.deepEqual((await written("verl", disagree)).report.left_out_rollouts, { no_reward: 1 });
});

test("a member that is evaluated keeps its team out of the loss", async () => {
  const joined = joinMembers([session("r0", "planner", { reward: 1 }), session("r0", "coder", { purpose: "eval" })]);
  assert.deepEqual([joined.purpose, joined.in_loss, joined.mask_reason], ["eval", false, "eval_member"]);
  assert.equal([...selectRows(joined).rows].filter((row) => row.trained_tokens > 0).length, 0);
});

test("a member that was asked nothing brings its team the reward", async () => {
  const { rows } = await written("flat", [session("r0", "planner"), session("r0", "coder", { calls: 0, reward: 1 })]);
  assert.deepEqual(
    rows.map((row) => [row.agent, row.reward]),
    [["planner", 1]],
  );
});

test("a joined team is the same in any order, names every node, message and trace once, and its rows are its tree's", () => {
  const members = [
    session("r0", "planner", { reward: 1 }),
    session("r0", "coder", { begin: 3_000 }),
    session("r0", null, { begin: 4_000 }),
  ];
  const joined = joinMembers(members);
  assert.deepEqual(joinMembers(members.toReversed()), joined);
  const sum = (count: (one: Trajectory) => number): number => members.reduce((total, one) => total + count(one), 0);
  assert.equal(
    new Set(joined.nodes.map((node) => node.node_id)).size,
    sum(({ nodes }) => nodes.length),
  );
  assert.equal(
    Object.keys(joined.messages).length,
    sum(({ messages }) => Object.keys(messages).length),
  );
  assert.equal(
    joined.fidelity.sampled_tokens,
    sum(({ fidelity }) => fidelity.sampled_tokens),
  );
  assert.deepEqual(
    [joined.lead_agents, joined.calls.map(({ agent, ordinal }) => [agent, ordinal])],
    [
      ["planner", "coder", "main"],
      [
        ["planner", 0],
        ["coder", 1],
        ["main", 2],
      ],
    ],
  );
  assert.deepEqual(verifyRows(joined, selectRows(joined).rows), []);
  assert.equal([...selectRows(joined, { strategy: "main-agent" }).rows].length, 3);
});
