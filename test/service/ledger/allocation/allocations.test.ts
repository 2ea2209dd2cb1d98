/** How samples are shared among groups, and what a policy is told. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { AllocationPolicy } from "../../../../service/ledger/allocation/allocation-policy.ts";
import { Allocations, allocationPolicies, emptyHistory, withRewards } from "../../../../service/ledger/allocation/index.ts";
import { mostSteps } from "../../../../service/ledger/allocation/set-history.ts";

const bounds = fc
  .tuple(fc.integer({ min: 2, max: 6 }), fc.nat(6), fc.nat(12))
  .map(([first, more, most]) => ({ first, samples: first + more, most: first + more + most }));
const rewards = fc.array(fc.constantFrom(0, 0.5, 1), { maxLength: 6 });
const told = { task_id: "t", task: emptyHistory, set: emptyHistory };

test("whatever the rewards, all groups together get at most their samples, and none fewer than its first or more than its most", () => {
  const allocations = new Allocations(allocationPolicies);
  fc.assert(
    fc.property(bounds, fc.array(rewards, { maxLength: 40 }), ({ first, samples, most }, groups) => {
      let [spare, made] = [0, 0];
      for (const all of groups) {
        const group = { ...told, rewards: all.slice(0, first), samples };
        const given = allocations.decide({ policy: "balanced", first, most }, group, spare);
        const isEqual = all.slice(0, first).every((one) => one === all[0]);
        const wanted = Math.min(all.length < 2 ? samples - first : isEqual ? 0 : most - first, spare + samples - first);
        assert.equal(given.more, wanted);
        assert.equal(given.spare, spare + samples - first - given.more);
        assert.ok(given.more >= 0 && given.spare >= 0 && first + given.more <= most);
        [spare, made] = [given.spare, made + first + given.more];
      }
      assert.equal(made + spare, samples * groups.length);
    }),
  );
});

test("a policy that throws, answers no whole number or is not known here leaves each group its samples, and is noted once", () => {
  const policyOf = (name: string, more: () => unknown): AllocationPolicy => ({ name, title: name, more: more as () => number });
  const broken: AllocationPolicy[] = [
    policyOf("throws", () => {
      throw new Error("boom");
    }),
    policyOf("nan", () => Number.NaN),
    policyOf("late", async () => 3),
    policyOf("late-and-broken", async () => {
      throw new Error("unheard");
    }),
    policyOf("half", () => 0.5),
  ];
  const notes: string[] = [];
  const allocations = new Allocations(broken, (text) => notes.push(text));
  for (const policy of [...broken.map(({ name }) => name), "absent"])
    for (const _ of [1, 2])
      assert.deepEqual(allocations.decide({ policy, first: 2, most: 9 }, { ...told, rewards: [0, 1], samples: 4 }, 0), {
        more: 2,
        spare: 0,
      });
  assert.equal(notes.length, 6);
  assert.match(notes[0] ?? "", /policy throws decides nothing, so groups get their samples: boom$/);
  assert.match(notes[1] ?? "", /it returned NaN, and no whole number$/);
  assert.match(notes[5] ?? "", /policy absent decides nothing.*allocation_policies$/);
});

test("a history counts each reward once, in all and under its policy step, and keeps the newest steps only", () => {
  const given = fc.array(fc.record({ reward: fc.double({ noNaN: true, min: -5, max: 5 }), step: fc.option(fc.nat(40)) }), {
    maxLength: 80,
  });
  fc.assert(
    fc.property(given, (all) => {
      const { total, steps } = withRewards(emptyHistory, all);
      assert.deepEqual([total?.measured ?? 0, total?.passed ?? 0], [all.length, all.filter(({ reward }) => reward >= 1).length]);
      const known = [...new Set(all.map(({ step }) => step ?? -1))].toSorted((a, b) => a - b);
      assert.equal(steps.length, Math.min(known.length, mostSteps));
      assert.deepEqual(
        steps.map(({ step }) => step ?? -1).toSorted((a, b) => a - b),
        steps.map(({ step }) => step ?? -1),
      );
      if (known.length <= mostSteps)
        for (const { step, measured } of steps) assert.equal(measured, all.filter((one) => one.step === step).length);
    }),
  );
});

test("a history stays small, however many rewards are counted", () => {
  const all = Array.from({ length: 20_000 }, (_, index) => ({ reward: Math.sin(index), step: index }));
  const { total, steps } = withRewards(emptyHistory, all);
  assert.equal(total?.measured, 20_000);
  assert.equal(steps.at(-1)?.step, 19_999);
  assert.ok(JSON.stringify({ total, steps }).length < 3_000);
});
