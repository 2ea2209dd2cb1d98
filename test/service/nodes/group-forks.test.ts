/** Trees with a ledger: any node makes forks, from the blobs of the earlier rollouts. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { readJson } from "../../../base/schema/read-json.ts";
import type { Task } from "../../../base/schema/task.ts";
import { Trajectory } from "../../../base/schema/trajectory.ts";
import { pickBackend } from "../../../sandboxes/registry.ts";
import { FolderBlobs, getPacked } from "../../../service/blobs/index.ts";
import { GroupPart, type ResultRow, SetSpec, SqliteLedger } from "../../../service/ledger/index.ts";
import { runNode } from "../../../service/nodes/index.ts";
import type { ScriptedReply, WireRequest } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { until } from "../../fakes/machine/until.ts";
import { runner } from "../../fakes/rollouts/small-run.ts";
import { writeTask } from "../../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("forks");

/** Three turns: look, make the file, say so. */
function play({ messages }: WireRequest): ScriptedReply {
  const turns = messages.filter(({ role }) => role === "assistant").length;
  if (turns === 0) return { tool_calls: [{ name: "bash", arguments: '{"command":"cat README.txt"}' }] };
  return turns === 1 ? { tool_calls: [{ name: "bash", arguments: '{"command":"echo yes > done.txt"}' }] } : { text: "done" };
}

type Place = { ledger: SqliteLedger; blobs: FolderBlobs; set: string };

/** Runs a machine with its own sessions until the ledger has that many `results`. */
async function machineAtWork(t: TestContext, name: string, at: Place, results: number, requests: WireRequest[]): Promise<void> {
  const place = join(scratch, `${t.name.length}`);
  const run = await runner(t, place, {
    path: join(place, name),
    retries: 0,
    reply: (request, index) => {
      if (index >= 0) requests.push(request);
      return play(request);
    },
    does: async (setup, { tasks, harness, session }) => {
      await at.ledger.submit(at.set, [GroupPart.parse({ group_key: "g", task: tasks[0] as Task })]);
      const stop = new AbortController();
      const node = runNode({ name, ledger: at.ledger, blobs: at.blobs, setup, harnessNamed: async () => harness, session }, stop.signal);
      await until(async () => (await at.ledger.results(at.set, null, 99)).length >= results, { ms: 120_000 });
      stop.abort();
      await node;
      return [];
    },
  });
  await run((await pickBackend("process", t.signal)).backend);
}

async function treeOf(
  t: TestContext,
  branching: object,
  until: number[],
): Promise<{ rows: ResultRow[]; trees: Trajectory[]; requests: WireRequest[][] }> {
  const place = join(scratch, `${t.name.length}`);
  await writeTask(place, "small");
  const at = { ledger: SqliteLedger.open(join(place, "ledger.sqlite")), blobs: new FolderBlobs(join(place, "trajectories")) };
  t.after(() => at.ledger[Symbol.asyncDispose]());
  const { set_id: set } = await at.ledger.putSet("s", SetSpec.parse({ samples: 2, retries: 0, branching }));
  const requests: WireRequest[][] = [];
  for (const [index, results] of until.entries()) {
    requests.push([]);
    await machineAtWork(t, `n${index}`, { ...at, set }, results, requests[index] ?? []);
  }
  const [group] = await at.ledger.wholeGroups(set, null, 9);
  const rows = group?.rows ?? [];
  const trees: Trajectory[] = [];
  for (const { payload } of rows) if (payload !== null) trees.push(Trajectory.parse(readJson(await getPacked(at.blobs, payload))));
  return { rows, trees, requests };
}

test("a machine that ran no rollout of a group can fork them from their blobs, token for token", { timeout: 300_000 }, async (t) => {
  const { rows, trees, requests } = await treeOf(t, { policy: "at_turns", turns: [1], leaves: 4 }, [2, 4]);
  assert.deepEqual(
    rows.map(({ index, state, reward, forked_from }) => [
      index,
      state,
      reward,
      forked_from?.rollout_id?.slice(-1) ?? null,
      forked_from?.turn ?? null,
    ]),
    [
      [0, "completed", 1, null, null],
      [1, "completed", 1, null, null],
      [2, "completed", 1, "0", 1],
      [3, "completed", 1, "1", 1],
    ],
  );
  assert.deepEqual(
    requests.map((of) => of.length),
    [6, 4],
    "the second machine samples what is behind the forked turns alone",
  );
  for (const fork of trees.slice(2)) {
    const chain = trees.find(({ rollout_id }) => rollout_id === fork.forked_from?.rollout_id);
    assert.equal(fork.calls[1]?.continuity?.mode, "recorded");
    assert.equal(fork.calls[1]?.prompt_length, chain?.calls[1]?.prompt_length);
    assert.equal(fork.calls[0]?.replayed_from, chain?.calls[0]?.call_id);
  }
});

test("forks of forks follow, and a fork without a place is cancelled with the reason", { timeout: 300_000 }, async (t) => {
  const { rows } = await treeOf(t, { policy: "at_turns", turns: [2], leaves: 7, width: 1, depth: 2 }, [7]);
  const [of0, of1] = rows.map(({ rollout_id }) => rollout_id);
  assert.deepEqual(
    rows.map(({ index, state, forked_from }) => [index, state, forked_from?.rollout_id ?? null, forked_from?.turn ?? null]),
    [
      [0, "completed", null, null],
      [1, "completed", null, null],
      [2, "completed", of0, 2],
      [3, "completed", of1, 2],
      [4, "cancelled", null, null],
      [5, "completed", rows[2]?.rollout_id, 2],
      [6, "completed", rows[3]?.rollout_id, 2],
    ],
  );
  assert.match(rows[4]?.error?.message ?? "", /no place left in its group where a fork may begin \(branching\)/);
});
