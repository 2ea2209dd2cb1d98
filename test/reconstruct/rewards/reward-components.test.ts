import assert from "node:assert/strict";
import { test } from "node:test";
import { RewardComponent } from "../../../base/schema/reward-component.ts";
import { componentsOfRow, reconstruct, selectRows, weightedTotal } from "../../../reconstruct/index.ts";
import { assistant, LogBuilder, user } from "../../fakes/records/log-builder.ts";
import { rebuilt } from "../rebuilt.ts";

const value = (scope: RewardComponent["scope"], target: string | null, number: number | null, weight: number | null = 1): RewardComponent =>
  RewardComponent.parse({ scope, target, name: scope, value: number, weight });

test("a weighted total is null where a weighted value is, and what has no weight counts in none", () => {
  assert.equal(weightedTotal([value("rollout", null, 1, 0.5), value("rollout", null, 3, 2)]), 6.5);
  assert.equal(weightedTotal([value("rollout", null, 1, 0.5), value("rollout", null, null, 2)]), null);
  assert.equal(weightedTotal([value("rollout", null, 1, 0.5), value("rollout", null, null, null), value("rollout", null, null, 0)]), 0.5);
  assert.equal(weightedTotal([value("rollout", null, 1, null)]), null);
  assert.equal(weightedTotal([]), null);
});

test("every value stands at its own token, and one of a call or a token in the one row that trains it", () => {
  const log = new LogBuilder();
  const says = assistant("one two");
  const a = log.call({ messages: [user("u")], says });
  const b = log.call({ messages: [user("u"), says, user("left")], parent: a });
  const c = log.call({ messages: [user("u"), says, user("right")], parent: a, agent: "helper" });
  const rows = [...selectRows(rebuilt(log)).rows];
  const values = [
    value("rollout", null, 1),
    value("agent", "main", 2),
    value("agent", "helper", 3),
    value("trace", "t1", 4),
    value("call", a, 5),
    value("call", b, 6),
    value("call", c, null),
    value("token", `${a}:1`, 8),
    value("token", `${c}:0`, 9),
  ];
  const placed = rows.map((row) => componentsOfRow(values, row).map((one) => [one.value, one.position]));
  // Prompt of 4, a's sample of 3 at 4 to 6; then 4 tokens of the user and the opening, and a sample of 2 at 11 and 12.
  assert.deepEqual(
    rows[0]?.segments.filter((one) => one.kind === "sampled").map((one) => [one.start, one.end]),
    [
      [4, 7],
      [11, 13],
    ],
  );
  assert.deepEqual(placed, [
    [
      [1, 12],
      [2, 12],
      [5, 6],
      [6, 12],
      [8, 5],
    ],
    [
      [1, 12],
      [3, 12],
      [4, 12],
      [null, 12],
      [9, 11],
    ],
  ]);
});

test("a rewarded session keeps values of every scope, and nulls stay null", () => {
  const log = new LogBuilder();
  const a = log.call({ messages: [user("u")] });
  const values = [value("call", a, null), value("token", `${a}:0`, 0.5)];
  log.entries.push({ type: "rewarded", time: 2, revision: 1, reward: null, components: { tests: null }, scoped_components: values });
  const trajectory = reconstruct(log.entries);
  assert.equal(trajectory.reward, null);
  assert.deepEqual(
    trajectory.reward_components.map((one) => [one.scope, one.target, one.value]),
    [
      ["rollout", null, null],
      ["call", a, null],
      ["token", `${a}:0`, 0.5],
    ],
  );
});

test("a value without its target, or a token without its place, is refused by name", () => {
  for (const wrong of [
    { scope: "rollout", target: "x" },
    { scope: "call", target: null },
    { scope: "token", target: "call1" },
  ])
    assert.equal(RewardComponent.safeParse({ ...wrong, name: "n", value: 1, weight: null }).error?.issues[0]?.path[0], "target");
});
