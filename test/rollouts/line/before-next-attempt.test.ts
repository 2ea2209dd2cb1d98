/** The time between two attempts at a rollout: an engine that restarts costs a pause and no rollout. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { AlidadeError } from "../../../base/errors.ts";
import { readRollouts } from "../../../rollouts/index.ts";
import { pickBackend } from "../../../sandboxes/registry.ts";
import { runner } from "../../fakes/rollouts/small-run.ts";
import { solve, writeTask } from "../../fakes/rollouts/small-task.ts";

async function placeOf(t: TestContext): Promise<string> {
  const place = await mkdtemp(join(tmpdir(), "alidade-next-attempt-"));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small");
  return place;
}

/** A run whose engine fails its first call and all that it is asked then, until `restMs` have been waited. */
async function restarting(t: TestContext, restMs: number) {
  const place = await placeOf(t);
  const pauses: number[] = [];
  const notes: string[] = [];
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 1,
    reply: (request, _index, engine) => {
      if (request.probe || pauses.length > 0) return solve(request);
      engine.isSick = true;
      return { refuse: { status: 500, message: "restarting" } };
    },
    onPause: (milliseconds, engine) => {
      pauses.push(milliseconds);
      if (pauses.reduce((sum, pause) => sum + pause, 0) >= restMs) engine.isSick = false;
    },
    onNote: (text) => notes.push(text),
  });
  const { backend } = await pickBackend("process", t.signal);
  return { last: (await run(backend)).at(-1), pauses, notes };
}

test("the attempt after an engine's failure waits, longer each time, until the engine answers again", async (t) => {
  const { last, pauses, notes } = await restarting(t, 40_000);
  assert.deepEqual([last?.attempt, last?.verdict?.reward], [2, 1]);
  // A loaded machine may take the engine's first answer for none.
  assert.deepEqual(pauses.slice(0, 6), [1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
  assert.deepEqual(notes, ["r-small-0: engine_error; attempt 2 begins when an engine answers again"]);
});

test("a server that says it is well while its generator fails is waited for, and costs no attempt", async (t) => {
  const place = await placeOf(t);
  const pauses: number[] = [];
  let isBroken = false;
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 1,
    reply: (request) => {
      if (!request.probe && pauses.length === 0) isBroken = true;
      return isBroken ? { refuse: { status: 500, message: "the worker died" } } : solve(request);
    },
    onPause: (milliseconds) => {
      pauses.push(milliseconds);
      isBroken = pauses.length < 4;
    },
  });
  const { backend } = await pickBackend("process", t.signal);
  const last = (await run(backend)).at(-1);
  assert.deepEqual([last?.attempt, last?.verdict?.reward, pauses], [2, 1, [1_000, 2_000, 4_000, 8_000]]);
});

test("an engine that does not answer again is waited for some minutes, and then the attempt begins", async (t) => {
  const { last, pauses, notes } = await restarting(t, Number.POSITIVE_INFINITY);
  assert.deepEqual([last?.attempt, last?.error?.code], [2, "engine_error"]);
  const minutes = pauses.reduce((sum, pause) => sum + pause, 0) / 60_000;
  // What the questions take counts too.
  assert.ok(minutes > 9 && minutes < 11, `${minutes} minutes`);
  assert.equal(notes.at(-1), "r-small-0: no engine answers after 10 minutes; attempt 2 begins all the same");
});

test("attempts after other failures of the infrastructure follow after growing pauses", async (t) => {
  const place = await placeOf(t);
  const pauses: number[] = [];
  const run = await runner(t, place, { path: join(place, "run"), retries: 6, onPause: (milliseconds) => pauses.push(milliseconds) });
  const { backend } = await pickBackend("process", t.signal);
  const create = () => Promise.reject(new AlidadeError("sandbox_unavailable", "the daemon was restarted"));
  const [last] = await run({ ...backend, create });
  assert.equal(last?.attempt, 7);
  assert.deepEqual(pauses, [1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
});

test("a run that is stopped between two attempts begins no other", async (t) => {
  const place = await placeOf(t);
  const stop = new AbortController();
  const path = join(place, "run");
  const run = await runner(t, place, { path, retries: 6, onPause: () => stop.abort(new AlidadeError("cancelled", "Ctrl-C")) });
  const { backend } = await pickBackend("process", t.signal);
  const create = () => Promise.reject(new AlidadeError("sandbox_unavailable", "the daemon was restarted"));
  await run({ ...backend, create }, stop.signal);
  assert.deepEqual(
    (await readRollouts(path)).map(({ attempt }) => attempt),
    [1],
  );
});
