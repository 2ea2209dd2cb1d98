/** Checks which rollouts a run skips or treats differently: after an earlier process died, or if a task is broken. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { AlidadeError } from "../../../base/errors.ts";
import { Limiter } from "../../../base/host/limiter.ts";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import { makeSlots, runTasks } from "../../../rollouts/index.ts";
import type { RunSetup } from "../../../rollouts/run-setup.ts";
import { pickBackend } from "../../../sandboxes/registry.ts";
import { runner } from "../../fakes/rollouts/small-run.ts";
import { writeTask } from "../../fakes/rollouts/small-task.ts";

type Guard = NonNullable<RunSetup["guard"]>;

/** Runs six samples of the small task, three at once. */
async function run(t: TestContext, own: Partial<RunSetup>, retries = 0): Promise<RolloutRecord[]> {
  const place = await mkdtemp(join(tmpdir(), "alidade-line-"));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small");
  const { backend } = await pickBackend("process", t.signal);
  const slots = makeSlots({ init: 3, run: 3, post: 3, rollouts: 3 });
  const does: typeof runTasks = (setup, batch, signal, drain) =>
    runTasks({ ...setup, slots, ...own, folder: setup.folder }, { ...batch, samples: 6 }, signal, drain);
  return (await runner(t, place, { path: join(place, "run"), retries, does }))(own.backend ?? backend);
}

function guardOf({ suspects = [], aside = {} }: { suspects?: number[]; aside?: Record<string, string> }, around: Guard["run"]): Guard {
  const isSuspect = (id: string): boolean => suspects.includes(Number(id.slice(-1)));
  const claim = () => ({ [Symbol.dispose]: () => undefined });
  const own = { blameless: [], claim, step: claim };
  const alone = new Limiter(1);
  const takeTurn: Guard["takeTurn"] = (_attempt, signal) => alone.enter(signal);
  return { ...own, aside: new Map(Object.entries(aside)), takeTurn, crashFile: "", isSuspect, run: around };
}

test("suspects of an earlier death run one at a time beside the others, which go on in their slots", async (t) => {
  const others = Promise.withResolvers<void>();
  let [active, most, ended] = [0, 0, 0];
  const guard = guardOf({ suspects: [0, 1, 2, 3] }, async (attempt, _fail, body) => {
    if (/-[45]#1$/.test(attempt)) {
      if (++ended === 2) others.resolve();
      return body();
    }
    most = Math.max(most, ++active);
    try {
      // Both others come to their turn while one suspect runs.
      await others.promise;
      return await body();
    } finally {
      active -= 1;
    }
  });
  const records = await run(t, { guard });
  assert.deepEqual(
    records.map(({ verdict }) => verdict?.reward),
    Array(6).fill(1),
  );
  assert.equal(most, 1);
});

test("a rollout that is set aside has a record that says why, and its siblings are made", async (t) => {
  const guard = guardOf({ aside: { "r-small-2": "the process ended by it" } }, (_attempt, _fail, body) => body());
  const records = await run(t, { guard });
  assert.deepEqual(
    records.map(({ verdict, error }) => verdict?.reward ?? error?.code),
    [1, 1, "rollout_set_aside", 1, 1, 1],
  );
});

test("of a task that is set aside the other rollouts have no record, so that --resume makes them", async (t) => {
  const { backend } = await pickBackend("process", t.signal);
  const create = () => Promise.reject(new AlidadeError("sandbox_unavailable", "no daemon"));
  const records = await run(t, { backend: { ...backend, create }, slots: makeSlots({ init: 1, run: 1, post: 1, rollouts: 1 }) });
  assert.deepEqual(
    records.map(({ sample_index }) => sample_index),
    [0, 1, 2],
  );
});

test("what the infrastructure broke is made again before rollouts that have not begun", async (t) => {
  const { backend } = await pickBackend("process", t.signal);
  const ended: string[] = [];
  let made = 0;
  const create: typeof backend.create = (spec, signal) => {
    if (++made === 1) throw new AlidadeError("sandbox_unavailable", "the daemon was restarted");
    return backend.create(spec, signal);
  };
  const onProgress: RunSetup["onProgress"] = (event) => {
    if (event.type === "done") ended.push(`${event.record.sample_index}#${event.record.attempt}`);
  };
  const slots = makeSlots({ init: 1, run: 1, post: 1, rollouts: 1 });
  await run(t, { backend: { ...backend, create }, slots, pause: async () => undefined, onProgress }, 1);
  assert.deepEqual(ended, ["0#1", "0#2", "1#1", "2#1", "3#1", "4#1", "5#1"]);
});
