import assert from "node:assert/strict";
import { test } from "node:test";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import { NullWatch, watchOfService } from "../../../rollouts/line/null-watch.ts";

const record = (task_id: string, verdict: object | null, error: object | null = null) =>
  ({ task_id, task_hash: "h", verdict, error }) as unknown as RolloutRecord;
const graded = (task: string) => record(task, { reward: 0, status: "graded", error: null });
const ungraded = (task: string, code = "judge_abstained") => record(task, { reward: null, status: code, error: { code } });

const named = (task_id: string) => ({ task_id, task_hash: "h" });

function watch(most: number) {
  const alarms: string[] = [];
  return { alarms, watch: new NullWatch(most, (text) => alarms.push(text)) };
}

test("a task of which too many rollouts have no reward is set aside, with one alarm, and its siblings go on", () => {
  const { alarms, watch: one } = watch(0.5);
  for (const next of [graded("a"), ungraded("b"), graded("b"), ungraded("b"), ungraded("a")]) one.look(next);
  assert.deepEqual([one.isSetAside(named("a")), one.isSetAside(named("b")), alarms], [false, false, []]);
  one.look(ungraded("b", "grader_error"));
  one.look(ungraded("b"));
  assert.deepEqual([one.isSetAside(named("a")), one.isSetAside(named("b")), alarms.length], [false, true, 1]);
  assert.match(alarms[0] ?? "", /^ALARM: task b is set aside: 3 of 4 .*2 judge_abstained, 1 grader_error.*max_null_share 0\.5/);
});

test("an engine that is down, and a run that is stopped, set no task aside; a sandbox that cannot be made does", () => {
  const { watch: one } = watch(0.1);
  for (let time = 0; time < 5; time++) {
    one.look(record("a", null, { code: "engine_unreachable" }));
    one.look(record("a", { reward: null, status: "cancelled", error: null }));
    one.look(record("b", null, { code: "sandbox_unavailable" }));
    one.look(record("constructor", { reward: 1, status: "graded", error: null }));
  }
  assert.deepEqual(
    ["a", "b", "constructor", "toString"].map((id) => one.isSetAside(named(id))),
    [false, true, false, false],
  );
});

test("a share of 1 sets nothing aside", () => {
  const { watch: one } = watch(1);
  for (let time = 0; time < 9; time++) one.look(ungraded("a"));
  assert.equal(one.isSetAside(named("a")), false);
});

test("in a service the latest rollouts count, a machine's own failures do not, and a task comes back once it is graded", () => {
  let now = 0;
  const alarms: string[] = [];
  const one = new NullWatch(
    0.5,
    (text) => alarms.push(text),
    watchOfService,
    () => now,
  );
  for (let time = 0; time < 1_000; time++) one.look(graded("a"));
  for (let time = 0; time < 9; time++) one.look(record("b", { reward: null, status: "infra_error", error: { code: "sandbox_died" } }));
  for (let time = 0; time < 9; time++) one.look(ungraded("a"));
  assert.deepEqual([one.isSetAside(named("a")), one.isSetAside(named("b")), alarms.length], [true, false, 1]);
  assert.match(alarms[0] ?? "", /9 of 16 rollouts .*This node ends its rollouts as failed/);
  assert.equal(one.isSetAside({ task_id: "a", task_hash: "mended" }), false);
  now += 600_000;
  assert.deepEqual([one.isSetAside(named("a")), one.isSetAside(named("a"))], [false, true], "one is made");
  one.look(ungraded("a"));
  assert.equal(one.isSetAside(named("a")), true);
  now += 600_000;
  assert.equal(one.isSetAside(named("a")), false);
  one.look(graded("a"));
  assert.deepEqual([one.isSetAside(named("a")), alarms.slice(1)], [false, ["task a is graded again, and is no longer set aside"]]);
});
