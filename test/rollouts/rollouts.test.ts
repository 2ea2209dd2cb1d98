/** Submitting rollouts, as a batch does it and as a listener would. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { AlidadeError } from "../../base/errors.ts";
import { type RolloutOutcome, type RolloutPlan, rolloutsOn, runTasks } from "../../rollouts/index.ts";
import { pickBackend } from "../../sandboxes/registry.ts";
import { WarmPool } from "../../sandboxes/warm-pool.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { writeTask } from "../fakes/rollouts/small-task.ts";

type Batch = Parameters<typeof runTasks>[1];

function planOf({ tasks: [task], harness }: Batch, own: Partial<RolloutPlan>): RolloutPlan {
  assert.ok(task);
  const place = { rollout_id: "alone", attempt: 1, group_id: "g", group_size: 8, sample_index: 5 };
  return { ...place, retries: 1, task, task_hash: "hash", harness, session: { purpose: "train" }, ...own };
}

async function placeOf(t: TestContext, name: string): Promise<string> {
  const place = await mkdtemp(join(tmpdir(), `alidade-${name}-`));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small");
  return place;
}

test("a rollout that is submitted by itself ends in one outcome: its last attempt's record and its trajectory", async (t) => {
  const place = await placeOf(t, "submit");
  const { backend } = await pickBackend("process", t.signal);
  let made = 0;
  const create: typeof backend.create = (spec, signal) => {
    if (++made === 1) throw new AlidadeError("sandbox_unavailable", "the daemon was restarted");
    return backend.create(spec, signal);
  };
  const outcomes: RolloutOutcome[] = [];
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    does: async (setup, batch, signal) => {
      outcomes.push(await rolloutsOn(setup).submit(planOf(batch, { attempt: 3 }), signal));
      return outcomes.map(({ record }) => record);
    },
  });
  const [record] = await run({ ...backend, create });
  assert.deepEqual([record?.rollout_id, record?.attempt, record?.group_size, record?.verdict?.reward], ["alone", 4, 8, 1]);
  const trajectory = outcomes[0]?.trajectory;
  assert.deepEqual(
    [trajectory?.rollout_id, trajectory?.attempt, trajectory?.group, trajectory?.reward],
    ["alone", 4, { id: "g", size: 8, sample_index: 5 }, 1],
  );
  await assert.rejects(run(backend, AbortSignal.abort(new AlidadeError("cancelled", "Ctrl-C"))), { code: "cancelled" });
});

test("an image that cannot be had ends a rollout with its first attempt", async (t) => {
  const place = await placeOf(t, "absent");
  const { backend } = await pickBackend("process", t.signal);
  let made = 0;
  const create: typeof backend.create = async () => {
    made++;
    throw new AlidadeError("image_pull_failed", "there is no image alidade/none:1");
  };
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    does: async (setup, batch, signal) => [(await rolloutsOn(setup).submit(planOf(batch, { retries: 3 }), signal)).record],
  });
  const [record] = await run({ ...backend, create });
  assert.deepEqual([made, record?.attempt, record?.error?.code, record?.verdict?.reward ?? null], [1, 1, "image_pull_failed", null]);
});

test("a drain gives up what waits for its sandbox to be prepared, and what is being prepared goes on to its end", async (t) => {
  const place = await placeOf(t, "drain");
  const { backend } = await pickBackend("process", t.signal);
  const [drain, hold] = [new AbortController(), Promise.withResolvers<void>()];
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    does: async (setup, batch, signal) => {
      const { init } = setup.slots;
      const submit = (own: Partial<RolloutPlan>) => rolloutsOn(setup).submit(planOf(batch, own), signal, drain.signal);
      const first = submit({});
      const second = submit({ rollout_id: "second" });
      while (init.counters.waiting === 0) await turn();
      drain.abort(new Error("drained"));
      hold.resolve();
      await assert.rejects(second, /^Error: drained$/);
      return [(await first).record];
    },
  });
  const create: typeof backend.create = async (spec, signal) => {
    await hold.promise;
    return backend.create(spec, signal);
  };
  const [record] = await run({ ...backend, create });
  assert.deepEqual([record?.rollout_id, record?.verdict?.reward], ["alone", 1]);
});

test("a drain ends the pause before the next attempt, and the outcome is that of the attempt before", async (t) => {
  const place = await placeOf(t, "pause");
  const { backend } = await pickBackend("process", t.signal);
  const drain = new AbortController();
  const ended: boolean[] = [];
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    does: async (setup, batch, signal) => {
      const pause: typeof setup.pause = async (_milliseconds, waiting) => {
        drain.abort(new Error("drained"));
        ended.push(waiting.aborted);
      };
      return [(await rolloutsOn({ ...setup, pause }).submit(planOf(batch, { retries: 6 }), signal, drain.signal)).record];
    },
  });
  const [record] = await run({ ...backend, create: () => Promise.reject(new AlidadeError("sandbox_unavailable", "no daemon")) });
  assert.deepEqual([ended, record?.attempt, record?.error?.code], [[true], 1, "sandbox_unavailable"]);
});

test("a warm pool hands out the sandboxes of agents and gradings, each once, and leaves none behind", async (t) => {
  const place = await placeOf(t, "warm");
  const { backend } = await pickBackend("process", t.signal);
  const [made, gone]: [string[], string[]] = [[], []];
  const signals: AbortSignal[] = [];
  const create: typeof backend.create = async (spec, signal) => {
    const sandbox = await backend.create(spec, signal);
    const release = sandbox[Symbol.asyncDispose].bind(sandbox);
    sandbox[Symbol.asyncDispose] = () => {
      gone.push(sandbox.id);
      return Promise.resolve(release());
    };
    made.push(sandbox.id);
    signals.push(signal);
    return sandbox;
  };
  const counting = { ...backend, create };
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    does: async (setup, batch, signal) => {
      await using warm = new WarmPool(counting, { sandboxes: 2, seconds: 60 });
      return await runTasks({ ...setup, warm }, { ...batch, samples: 3 }, signal);
    },
  });
  const records = await run(counting);
  assert.deepEqual(
    records.map(({ verdict }) => verdict?.reward),
    [1, 1, 1],
  );
  assert.equal(made.length, 6, "an agent's and a grader's for each, and none in vain");
  assert.deepEqual(gone.toSorted(), made.toSorted());
  const ahead = signals.filter((one) => one === signals[0]).length;
  assert.ok(ahead >= 3, `${ahead} were made ahead, under the pool's own signal`);
});

test("no sandbox is made ahead for a grader that only reads the work", async (t) => {
  const place = await placeOf(t, "unwarm");
  const { backend } = await pickBackend("process", t.signal);
  const expected: string[] = [];
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    does: async (setup, batch, signal) => {
      await using warm = new WarmPool(backend, { sandboxes: 2, seconds: 60 });
      const expect = warm.expect.bind(warm);
      warm.expect = (spec, urgency = "soon") => {
        expected.push(urgency);
        return expect(spec, urgency);
      };
      const grader = { kind: "composite", combine: "all", parts: [{ name: "kept", grader: { kind: "state", only: ["**"] } }] };
      const tasks = batch.tasks.map((task) => ({ ...task, grader }));
      return await runTasks({ ...setup, warm }, { ...batch, tasks, samples: 1 }, signal);
    },
  });
  const records = await run(backend);
  assert.deepEqual([records[0]?.verdict?.reward, expected], [1, ["later"]], "the agent's alone");
});

test("of a large batch a handful of rollouts is claimed at a time, and each is made once", async (t) => {
  const place = await placeOf(t, "claims");
  const { backend } = await pickBackend("process", t.signal);
  let [claimed, over, most, atOnce] = [0, 0, 0, 0];
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    does: (setup, batch, signal) => {
      const [small] = batch.tasks;
      assert.ok(small);
      atOnce = setup.slots.atOnce;
      const tasks = Array.from({ length: 50 }, (_, index) => ({ ...small, task_id: `small-${index}` }));
      const samplingOf = () => {
        most = Math.max(most, ++claimed - over);
        return {};
      };
      const onProgress: typeof setup.onProgress = (event) => {
        if (event.type === "done") over++;
      };
      return runTasks({ ...setup, onProgress }, { ...batch, tasks, samples: 4, samplingOf }, signal);
    },
  });
  const records = await run({ ...backend, create: () => Promise.reject(new AlidadeError("sandbox_unavailable", "no daemon")) });
  assert.deepEqual([claimed, over, most], [200, 200, atOnce]);
  assert.deepEqual(
    records.map(({ task_id, sample_index }) => `${task_id}/${sample_index}`),
    Array.from({ length: 200 }, (_, index) => `small-${Math.floor(index / 4)}/${index % 4}`),
  );
});
