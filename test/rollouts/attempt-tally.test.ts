/** Which attempts are in neither loss nor baseline is counted by cause, task and group, and too many of them are an alarm. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type AttemptEnd, described, tallyOf } from "../../base/statistics/attempt-tally.ts";
import { DiskStore } from "../../proxy/store/index.ts";
import { readRollouts, readTrajectories } from "../../rollouts/index.ts";
import { pickBackend } from "../../sandboxes/registry.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { writeTask } from "../fakes/rollouts/small-task.ts";

const ends = (task_id: string, group_id: string, ...reasons: (string | null)[]): AttemptEnd[] =>
  reasons.map((mask_reason) => ({ task_id, group_id, mask_reason, summary: null }));

test("masked shares are told of the run, its tasks and its groups, with an alarm above one in ten", () => {
  const quiet = ends("a", "g1", ...Array<null>(9).fill(null), "engine_error");
  const hiding = [...ends("b", "g2", null, null, null, null), ...ends("b", "g3", "grader_timeout", "grader_timeout", null, "engine_error")];
  const tally = tallyOf([...quiet, ...hiding]);
  assert.deepEqual([tally.attempts, tally.masked], [18, { engine_error: 2, grader_timeout: 2 }]);
  assert.deepEqual(
    tally.groups.map(({ group_id, masked_share }) => [group_id, masked_share]),
    [
      ["g1", 0.1],
      ["g2", 0],
      ["g3", 0.75],
    ],
  );
  assert.deepEqual(
    tally.alarms.map((alarm) => alarm.slice(0, alarm.indexOf(":"))),
    ["task b", "group g3"],
  );
  assert.match(tally.alarms[1] ?? "", /75 % of 4 attempts .*\(2 grader_timeout, 1 engine_error\).*--unmeasured zero/);
});

test("an alarm over what the infrastructure alone caused counsels to mend it, and not to train it as a failure", () => {
  for (const reason of ["image_pull_failed", "sandbox_unavailable", "engine_error", "store_full"]) {
    const [alarm = ""] = tallyOf(ends("a", "g", reason, null)).alarms;
    assert.match(alarm, /alidade run --resume/, reason);
    assert.doesNotMatch(alarm, /--unmeasured/, reason);
  }
  for (const reason of ["grader_timeout", "grader_error", "harness_timeout", "overlong"])
    assert.match(tallyOf(ends("a", "g", reason, "engine_error", null)).alarms[0] ?? "", /--unmeasured zero/, reason);
});

test("what was stopped from outside is counted and alarms no one", () => {
  const tally = tallyOf(ends("a", "g", "cancelled", "interrupted", null));
  assert.deepEqual([tally.masked, tally.masked_share, tally.alarms], [{ cancelled: 1, interrupted: 1 }, 0, []]);
  assert.equal(described(tallyOf([])), "0 % of 0 attempts are in neither loss nor baseline");
});

test("a task whose agents take more than a tenth of their tokens out of training is an alarm, by reason", () => {
  const end = (task_id: string, untrained_by_agent: Record<string, number>, mask_reason: string | null = null): AttemptEnd => ({
    ...{ task_id, group_id: "g", mask_reason },
    summary: { sampled_tokens: 100, untrained_by_agent },
  });
  const masked = end("quiet", { undelivered: 100 }, "cancelled");
  const tally = tallyOf([end("quiet", { undelivered: 10 }), masked, end("hiding", { undelivered: 20, images: 5 }), end("hiding", {})]);
  assert.deepEqual(
    tally.tasks.map(({ task_id, sampled_tokens, untrained_share }) => [task_id, sampled_tokens, untrained_share]),
    [
      ["quiet", 100, 0.1],
      ["hiding", 200, 0.125],
    ],
  );
  assert.equal(tally.alarms.length, 1);
  assert.match(tally.alarms[0] ?? "", /^task hiding: 13 % of 200 sampled tokens are not trained \(20 undelivered, 5 images\)/);
});

/** A store with a bug that what an agent sent brings about. */
class BuggyStore extends DiskStore {
  override read(): Promise<never> {
    return Promise.reject(new TypeError("undefined is not iterable"));
  }
}

test("a bug of ours that an agent may have found is counted, and gives it no other draw", { timeout: 300_000 }, async (t) => {
  const place = await mkdtemp(join(tmpdir(), "alidade-tally-"));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small");
  const path = join(place, "run");
  const run = await runner(t, place, { path, retries: 2, storeAt: (folder) => new BuggyStore(folder) });
  const [record] = await run((await pickBackend("process", t.signal)).backend);
  assert.deepEqual([record?.attempt, record?.error?.code, record?.mask_reason], [1, "internal", "internal"]);
  assert.deepEqual(await readTrajectories(path), []);
  const { attempts, masked, alarms } = tallyOf((await readRollouts(path)).filter(({ state }) => state === "done"));
  assert.deepEqual([attempts, masked, alarms.length], [1, { internal: 1 }, 1]);
});
