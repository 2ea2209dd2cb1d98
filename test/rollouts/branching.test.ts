/** Groups that are trees: chains first, then forks of their turns, whose rows and credit hold each sampled token once. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Branching } from "../../base/schema/branching.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { primeRl } from "../../exporters/prime-rl.ts";
import { selections, selectRows } from "../../reconstruct/index.ts";
import { atTurns } from "../../rollouts/branching/at-turns.ts";
import type { BranchingPolicy, ForkPlace, TreeSoFar } from "../../rollouts/branching/branching-policy.ts";
import { withinBounds } from "../../rollouts/branching/choose-forks.ts";
import { surprising } from "../../rollouts/branching/surprising.ts";
import { uniform } from "../../rollouts/branching/uniform.ts";
import { readTrajectories, runTasks } from "../../rollouts/index.ts";
import { pickBackend } from "../../sandboxes/registry.ts";
import type { ScriptedReply, WireRequest } from "../fakes/engines/scripted-engine.ts";
import { exported } from "../fakes/records/exported.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { setUnrepeatable, writeTask } from "../fakes/rollouts/small-task.ts";

type Tree = { records: RolloutRecord[]; trajectories: Trajectory[]; requests: WireRequest[] };

/** Three turns: look, make the file, say so. Every second rollout makes nothing. */
function play(request: WireRequest, index: number): ScriptedReply {
  const turns = request.messages.filter((message) => message.role === "assistant").length;
  if (turns === 0) return { tool_calls: [{ name: "bash", arguments: '{"command":"cat README.txt"}' }] };
  const command = index % 2 === 0 ? "echo yes > done.txt" : `echo ${index}`;
  return turns === 1 ? { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command }) }] } : { text: "done" };
}

async function treeOf(t: TestContext, options: Partial<Branching>, policy: BranchingPolicy, endsAfter = Infinity): Promise<Tree> {
  const place = await mkdtemp(join(tmpdir(), "alidade-branching-"));
  t.after(() => rm(place, { recursive: true }));
  const task = await writeTask(place, "small");
  if (options.unrepeatable !== undefined) await setUnrepeatable(task);
  const requests: WireRequest[] = [];
  const branching = { options: Branching.parse({ leaves: 4, ...options }), policy };
  const path = join(place, "run");
  const reply = (request: WireRequest, index: number): ScriptedReply => {
    if (index >= 0) requests.push(request);
    return play(request, Math.max(0, index));
  };
  const { backend } = await pickBackend("process", t.signal);
  const drain = new AbortController();
  let ended = 0;
  const does: typeof runTasks = (setup, batch, signal, after = signal) => {
    const onProgress: typeof setup.onProgress = (event) => {
      if (event.type === "done" && ++ended >= endsAfter) drain.abort();
      setup.onProgress(event);
    };
    return runTasks({ ...setup, onProgress }, { ...batch, samples: 2, branching }, signal, AbortSignal.any([after, drain.signal]));
  };
  const run = await runner(t, place, { path, retries: 0, reply, does });
  let records = await run(backend);
  if (endsAfter < Infinity) {
    const again = await runner(t, place, {
      path,
      retries: 0,
      reply,
      does: (setup, batch, signal) => runTasks(setup, { ...batch, samples: 2, branching }, signal),
    });
    records = await again(backend);
  }
  const trajectories = (await readTrajectories(path)).toSorted(
    (one, other) => (one.group.sample_index ?? 0) - (other.group.sample_index ?? 0),
  );
  return { records, trajectories, requests };
}

test("a group is as many leaves as it may have: forks behind turns of its chains, whose first prompt is the recorded one", async (t) => {
  const { records, trajectories, requests } = await treeOf(t, { turns: [1] }, atTurns);
  await t.test("a turn that others were forked behind is worth the mean of what came of it", () => assertCredit(trajectories));
  assert.deepEqual(
    records.map(({ sample_index, group_size, forked_from }) => [
      sample_index,
      group_size,
      forked_from?.rollout_id ?? null,
      forked_from?.turn ?? null,
    ]),
    [
      [0, 4, null, null],
      [1, 4, null, null],
      [2, 4, "r-small-0", 1],
      [3, 4, "r-small-1", 1],
    ],
  );
  assert.equal(new Set(records.map(({ group_id }) => group_id)).size, 1);
  assert.equal(requests.length, 3 + 3 + 2 + 2, "nothing of a shared beginning is sampled twice");
  const given = requests.flatMap(({ kv_transfer_params }) => kv_transfer_params?.prompt_token_ids ?? []);
  assert.ok(given.length > 0);
  for (const fork of trajectories.slice(2)) {
    const chain = trajectories.find(({ rollout_id }) => rollout_id === fork.forked_from?.rollout_id);
    const [own, recorded] = [fork.calls[1], chain?.calls[1]];
    assert.equal(own?.continuity?.mode, "recorded");
    assert.equal(own?.prompt_length, recorded?.prompt_length);
    // What the engine was given, held against what it had said it sampled the recorded turn on.
    const prompts = requests.map(({ kv_transfer_params }) => kv_transfer_params?.prompt_token_ids?.join());
    assert.ok(prompts.includes(idsBefore(chain as Trajectory, 1).join()));
  }
});

test("a task that is not repeatable is forked only when its branching allows it", async (t) => {
  const { records } = await treeOf(t, { turns: [1], leaves: 3, unrepeatable: true }, atTurns);
  assert.deepEqual(
    records.map(({ forked_from }) => forked_from?.turn ?? null),
    [null, null, 1],
  );
  await assert.rejects(treeOf(t, { unrepeatable: false }, atTurns), { param: "environment.repeatable" });
});

test("each sampled token of a tree is trained once, whatever the selection", async (t) => {
  const { trajectories } = await treeOf(t, { turns: [1, 2], width: 2, depth: 2, leaves: 7 }, uniform);
  assert.equal(trajectories.length, 7);
  for (const { name } of selections) {
    const trained = new Map<string, number>();
    for (const trajectory of trajectories)
      for (const row of selectRows(trajectory, { strategy: name }).rows)
        for (const { call_id, start, end, node_start } of row.segments)
          for (let at = start; at < end; at++) {
            const key = `${call_id} ${node_start + at - start}`;
            trained.set(key, (trained.get(key) ?? 0) + (row.loss_mask[at] ?? 0) * row.weight);
          }
    const sampled = new Set(
      trajectories.flatMap(({ calls }) =>
        calls.flatMap(({ call_id, sampled_length }) => Array.from({ length: sampled_length ?? 0 }, (_, at) => `${call_id} ${at}`)),
      ),
    );
    const weights = [...trained].filter(([key]) => sampled.has(key)).map(([, weight]) => weight);
    assert.deepEqual(new Set(weights.filter((weight) => weight !== 0)), new Set([1]), name);
    assert.equal(weights.filter((weight) => weight === 1).length, sampled.size, name);
  }
});

test("a run that was stopped goes on with the forks of its records, and makes none twice", async (t) => {
  const { records } = await treeOf(t, { turns: [1], leaves: 5, width: 2 }, atTurns, 3);
  assert.deepEqual(
    records.map(({ sample_index, state }) => [sample_index, state]),
    [0, 1, 2, 3, 4].map((index) => [index, "done"]),
  );
});

/** By the format that has an advantage for each token. */
async function assertCredit(trajectories: Trajectory[]): Promise<void> {
  const rewards = trajectories.map(({ reward }) => reward ?? 0);
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  const [chain, , fork] = rewards.map((reward) => reward - mean) as [number, number, number, number];
  const behind = (chain + fork) / 2;
  assert.notEqual(behind, chain);
  for (const [credit, first, second] of [
    ["outcome", chain, chain],
    ["tree", behind, chain],
    ["siblings", 2 * behind, 2 * chain - behind],
  ] as const) {
    const own = { advantage: "dr_grpo", credit, env_name: "alidade" };
    const { rows } = await exported(primeRl, trajectories, { own });
    const advantages = rows.map((row) => (row.advantages as number[]).filter((_, at) => (row.mask as boolean[])[at]));
    const [shared, later] = trajectories[0]?.calls.map(({ sampled_length }) => sampled_length ?? 0) ?? [];
    const expected = [...new Array(shared).fill(first), ...new Array(later).fill(second)];
    assert.ok(
      advantages.some((each) => each.slice(0, expected.length).every((value, at) => Math.abs(value - expected[at]) < 1e-9)),
      credit,
    );
  }
}

const place = (fields: Partial<ForkPlace>): ForkPlace => ({
  ...{ rollout_id: "a", turn: 1, depth: 0, index: 0, of: 3, surprise: null, after_tools: true, forks: 0, reward: null },
  ...fields,
});

test("the policies choose as they say, within the bounds of width and leaves", () => {
  const places = [
    place({ turn: 1, surprise: 0.5 }),
    place({ turn: 2, surprise: 2 }),
    place({ turn: 3, surprise: 3, after_tools: false }),
    place({ turn: 5 }),
  ];
  const tree: TreeSoFar = { places, room: 3, width: 2, turns: [2, 9], random: () => 0.1 };
  const turns = (policy: BranchingPolicy, more: Partial<TreeSoFar> = {}): number[] =>
    withinBounds(policy.forks({ ...tree, ...more }), places, { room: tree.room, width: tree.width }).map(({ turn }) => turn);
  assert.deepEqual(turns(atTurns), [2, 2]);
  assert.deepEqual(turns(surprising), [2, 1, 2]);
  assert.deepEqual(turns(uniform), [1, 2, 3]);
  let drawn = 1;
  assert.deepEqual(turns(uniform, { random: () => (drawn -= 0.1) }), [5, 3, 2]);
  assert.deepEqual(withinBounds([{ rollout_id: "b", turn: 1 }], places, tree), []);
});

/** The prompt of the call with this ordinal. */
function idsBefore({ nodes, calls }: Trajectory, ordinal: number): number[] {
  const end = calls[ordinal]?.prompt_node_id;
  const byId = new Map(nodes.map((node) => [node.node_id, node]));
  const ids: number[][] = [];
  for (let node = byId.get(end ?? ""); node !== undefined; node = byId.get(node.parent_id ?? "")) ids.unshift(node.token_ids);
  return ids.flat();
}
