/** Rollouts that begin with another one's turns: sandboxes anew, tools that really run, and what is refused before that. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { Task } from "../../base/schema/task.ts";
import { toRecording } from "../../proxy/index.ts";
import { assertForkable } from "../../rollouts/accepted/index.ts";
import { type Batch, type RunSetup, rolloutsOn, runTasks, toReplayPlans } from "../../rollouts/index.ts";
import type { ReplayOrder } from "../../rollouts/replay/to-replay-plans.ts";
import { pickBackend } from "../../sandboxes/registry.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { solve, writeTask } from "../fakes/rollouts/small-task.ts";

type Again = {
  record: RolloutRecord;
  /** Requests that the engine has had. */
  asked: () => number;
  plansOf: (order: Partial<ReplayOrder>) => ReturnType<typeof toReplayPlans>;
  make: (order: Partial<ReplayOrder>) => Promise<RolloutRecord[]>;
};

/** A rollout of the small task that earned 1, and what can be made of it again. */
async function afterOne(t: TestContext, body: (again: Again) => Promise<void>): Promise<void> {
  const place = await mkdtemp(join(tmpdir(), "alidade-replay-"));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small");
  let asked = 0;
  const reply: typeof solve = (request) => {
    asked++;
    return solve(request);
  };
  const does = async (setup: Parameters<typeof runTasks>[0], batch: Batch, signal: AbortSignal): Promise<RolloutRecord[]> => {
    const records = await runTasks(setup, batch, signal);
    const [record] = records as [RolloutRecord];
    const [task] = batch.tasks as [Batch["tasks"][number]];
    const recording = toRecording(record.session_id ?? "", await setup.proxy.sessions.store.read(record.session_id ?? ""));
    const plansOf: Again["plansOf"] = (order) =>
      toReplayPlans({
        ...{
          run_id: "again",
          record,
          recording,
          task,
          harness: batch.harness,
          turn: null,
          sampled: null,
          words: "go_on",
          unrepeatable: false,
        },
        ...order,
      });
    const make: Again["make"] = (order) => makeAll(setup, plansOf(order), signal);
    await body({ record, asked: () => asked, plansOf, make });
    return records;
  };
  const run = await runner(t, place, { path: join(place, "run"), retries: 2, reply, does });
  await run((await pickBackend("process", t.signal)).backend);
}

function makeAll(setup: RunSetup, plans: ReturnType<typeof toReplayPlans>, signal: AbortSignal): Promise<RolloutRecord[]> {
  return Promise.all(plans.map(async (plan) => (await rolloutsOn(setup).submit(plan, signal)).record));
}

const fork = { samples: 2, engines: [], rendered: true, model: null, edit: null };

test("a replay to the end leaves the same work, earns the recorded reward and asks no engine", async (t) => {
  await afterOne(t, async ({ record, asked, make }) => {
    const before = asked();
    const [again] = await make({});
    assert.equal(asked(), before);
    assert.deepEqual([again?.replay?.how, again?.replay?.turns, again?.verdict?.reward], ["arrived", 2, record.verdict?.reward]);
    assert.equal(again?.stop_reason, "replayed");
    assert.equal(again?.work?.sha256, record.work?.sha256);
    assert.equal(again?.summary?.trainable_tokens, 0);
    assert.deepEqual(again?.forked_from, {
      rollout_id: record.rollout_id,
      session_id: record.session_id,
      turn: 2,
      edited: false,
      rendered: false,
    });
  });
});

test("a replay until a turn stops there, and grades what is there", async (t) => {
  await afterOne(t, async ({ make }) => {
    const [none] = await make({ turn: 1 });
    assert.deepEqual([none?.replay?.how, none?.replay?.turns, none?.verdict?.reward], ["arrived", 1, 1]);
  });
});

test("forks are a group of their own that says where it comes from, and train what they sampled", async (t) => {
  await afterOne(t, async ({ record, make }) => {
    const forks = await make({ turn: 1, sampled: fork });
    assert.deepEqual(
      forks.map(({ sample_index, group_size, verdict, forked_from }) => [sample_index, group_size, verdict?.reward, forked_from?.turn]),
      [
        [0, 2, 1, 1],
        [1, 2, 1, 1],
      ],
    );
    for (const { rollout_id, summary } of forks) {
      assert.notEqual(rollout_id, record.rollout_id);
      assert.ok((summary?.trainable_tokens ?? 0) > 0);
      assert.equal(summary?.trainable_tokens, summary?.sampled_tokens);
      assert.ok((summary?.replayed_tokens ?? 0) > 0);
    }
  });
});

test("an answer by hand that makes the harness do otherwise is a rollout with another end", async (t) => {
  await afterOne(t, async ({ make }) => {
    const [one] = await make({ turn: 1, sampled: { ...fork, samples: 1, edit: "I give up." } });
    assert.deepEqual([one?.verdict?.reward, one?.forked_from?.edited, one?.summary?.trainable_tokens], [0, true, 0]);
  });
});

test("what cannot be replayed is refused in one sentence, before a sandbox is made", async (t) => {
  await afterOne(t, async ({ record, plansOf }) => {
    const [plan] = plansOf({});
    assert.ok(plan);
    const { task, harness } = plan;
    const refused = (order: Partial<ReplayOrder>, why: RegExp) => assert.throws(() => plansOf(order), why);
    refused({ turn: 7 }, /there is no turn 7: its turns are 1, 2/);
    refused({ harness: { ...harness, version: "9.9" } }, /was made by command, and this is command 9.9: a replay needs the same harness/);
    refused({ task: { ...task, instruction: "Another." } }, /task small is another one than when rollout/);
    refused({ record: { ...record, session_id: null } }, /has no session that could be replayed/);
    refused({ turn: 2, sampled: fork }, /turn 2 is the last one: nothing was asked behind it/);
    refused({ turn: 1, sampled: { ...fork, rendered: false } }, /token for token: there is no engine; --rendered takes/);
    refused(
      { turn: 1, sampled: { ...fork, edit: '{"tool_calls": [{"name": "fly", "arguments": {}}]}' } },
      /the harness has no tool "fly": it has bash/,
    );
    const unrepeatable = { ...task, environment: { ...task.environment, repeatable: false } };
    const { hashOf } = await import("../../base/schema/ids.ts");
    const changed = { task: unrepeatable, record: { ...record, task_hash: hashOf(unrepeatable).slice(0, 16) } };
    refused(changed, /task small has environment.repeatable: false, so its commands may come to something else: add --unrepeatable/);
    assert.equal(plansOf({ ...changed, unrepeatable: true }).length, 1);
    for (const [environment, why] of [
      [{ repeatable: false }, "has environment.repeatable: false"],
      [{ network: { allow: ["example.org"] } }, "reaches hosts (environment.network)"],
      [{ network: "public" }, "reaches hosts (environment.network)"],
      [{ services: { shop: { image: "shop" } } }, "has services (environment.services)"],
      [{ services: { shop: { image: "shop" } }, repeatable: true }, null],
      [{}, null],
    ] as const) {
      const one = Task.parse({ ...task, environment });
      if (why === null) assertForkable(one, {});
      else
        assert.throws(() => assertForkable(one, {}), {
          code: "task_invalid",
          param: "environment.repeatable",
          message: `task small ${why}, so its commands may come to something else in a fork: give branching \`unrepeatable: true\` to fork it all the same, or the task \`environment: { repeatable: true }\` if they do not.`,
        });
      assertForkable(one, { unrepeatable: true });
    }
  });
});
