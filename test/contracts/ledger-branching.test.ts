/** The contract of every ledger for groups that are trees: forks are claimed round by round, after the rollouts that they fork. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { type AttemptResult, type Claim, GroupPart, type Ledger, SetSpec } from "../../service/ledger/index.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { nameWeights } from "../fakes/records/name-weights.ts";
import { ledgerDrivers, ledgerTest, openFor } from "./ledger-drivers.ts";

const task = (id: string) => ({ task_id: id, instruction: "Do it.", grader: { kind: "script", command: ["true"] } });
const part = (key: string, more: object = {}) => GroupPart.parse({ group_key: key, task: task(key), ...more });
const payload = { key: "s/r/1-0.json.zst", sha256: "0", bytes: 1 };
const measured = (more: Partial<AttemptResult> = {}) => attemptResult({ payload, ...more });
const placesOf = (claims: readonly Claim[]) => claims.map(({ group_key, index }) => `${group_key}/${index}`).sort();

for (const driver of ledgerDrivers()) {
  const { place } = driver;
  const test = ledgerTest(driver);
  const begin = async (t: TestContext, more: object = {}) => {
    const at = place();
    const open = () => openFor(t, at);
    const ledger = await open();
    const { set_id: set } = await ledger.putSet("s", SetSpec.parse({ samples: 2, branching: { leaves: 7, depth: 2 }, ...more }));
    return { ledger, again: open, pass: at.pass, set, lease: await ledger.join({ name: "n", slots: 9 }) };
  };
  const finishAll = async (ledger: Ledger, claims: readonly Claim[], result: AttemptResult = measured()) => {
    for (const one of claims) assert.equal(await ledger.finish(one, result), "accepted");
  };

  test("forks are claimed round by round, when the earlier rollouts of their group are over; with all leaves the group is whole", async (t) => {
    const { ledger, again, set, lease } = await begin(t);
    assert.equal((await ledger.submit(set, [part("a"), part("b")])).rollouts, 14);
    const chains = await ledger.claim(lease, 9);
    assert.deepEqual(placesOf(chains), ["a/0", "a/1", "b/0", "b/1"]);
    assert.deepEqual(chains[0]?.group_size, 7);
    assert.deepEqual((await ledger.set(set)).rollouts.held, 10);
    const ofA = chains.filter(({ group_key }) => group_key === "a");
    await finishAll(ledger, ofA.slice(0, 1));
    assert.deepEqual(await ledger.claim(lease, 9), []);
    await finishAll(ledger, ofA.slice(1), measured({ state: "failed", reward: null }));
    const first = await ledger.claim(lease, 9);
    assert.deepEqual(placesOf(first), ["a/2", "a/3", "a/4"]);
    await finishAll(ledger, first.slice(0, 2));
    // A process that starts now finds the group in the same state.
    const other = await again();
    const next = await other.join({ name: "n", slots: 9 });
    const taken = await other.claim(next, 9);
    assert.deepEqual(placesOf(taken), ["a/4", "b/0", "b/1"]);
    await finishAll(
      other,
      taken.filter(({ group_key }) => group_key === "a"),
    );
    const last = await other.claim(next, 9);
    assert.deepEqual(placesOf(last), ["a/5", "a/6"]);
    assert.deepEqual(await other.wholeGroups(set, null, 9), []);
    await finishAll(other, last, measured({ forked_from: { rollout_id: "r", session_id: "s", turn: 2, edited: false, rendered: false } }));
    const [group] = await other.wholeGroups(set, null, 9);
    assert.deepEqual(
      group?.rows.map(({ index, biases, forked_from }) => [index, biases, forked_from?.turn ?? null]),
      [0, 1, 2, 3, 4, 5, 6].map((index) => [index, ["branching"], index < 5 ? null : 2]),
    );
  });

  test("a group without a measured rollout gets no forks, and is whole", async (t) => {
    const { ledger, set, lease } = await begin(t);
    await ledger.submit(set, [part("a")]);
    await finishAll(ledger, await ledger.claim(lease, 9), measured({ state: "failed", reward: null }));
    while ((await ledger.set(set)).is_cancelling) await ledger.endMore();
    const [group] = await ledger.wholeGroups(set, null, 9);
    assert.deepEqual(
      group?.rows.map(({ state }) => state),
      ["failed", "failed", ...Array.from({ length: 5 }, () => "cancelled")],
    );
    assert.match(group?.rows[2]?.error?.message ?? "", /nothing to fork \(branching\)$/);
  });

  test("forks begin also if the last rollout before them was cancelled or lost; a fork without a place is cancelled alone", async (t) => {
    const { ledger, set, lease } = await begin(t);
    await ledger.submit(set, [part("a")]);
    const chains = await ledger.claim(lease, 9);
    await finishAll(ledger, chains.slice(0, 1));
    assert.equal(await ledger.cancel({ set, rollout: chains[1]?.rollout_id ?? "" }, "no use"), 1);
    const first = await ledger.claim(lease, 9);
    assert.deepEqual(placesOf(first), ["a/2", "a/3", "a/4"]);
    for (const { rollout_id } of first) assert.equal(await ledger.cancel({ set, rollout: rollout_id }, "no place left"), 1);
    for (const one of first) assert.equal(await ledger.finish(one, measured()), "fenced");
    const last = await ledger.claim(lease, 9);
    assert.deepEqual(placesOf(last), ["a/5", "a/6"]);
    for (const { rollout_id } of last) assert.equal(await ledger.setAside(rollout_id, "the process ended by it"), true);
    assert.equal((await ledger.wholeGroups(set, null, 9)).length, 1);
  });

  test("cancel, drain, early_stop and the bound on staleness work for trees too", async (t) => {
    const { ledger, set, lease } = await begin(t, { early_stop: 3, max_version_lag: 0, groups_per_step: 1 });
    await nameWeights(ledger, 1);
    await ledger.submit(set, [part("a"), part("b"), part("c")]);
    await finishAll(ledger, await ledger.claim(lease, 9));
    const forks = await ledger.claim(lease, 9);
    assert.deepEqual(placesOf(forks), ["a/2", "a/3", "a/4"], "forks are of the group that was begun, and no other one is begun for them");
    await finishAll(ledger, forks.slice(0, 1));
    while ((await ledger.set(set)).is_cancelling) await ledger.endMore();
    const [group] = await ledger.wholeGroups(set, null, 9);
    assert.deepEqual(group?.rows.map(({ state }) => state[1]).join(""), "oooaaaa");
    await ledger.drain(set);
    assert.equal(await ledger.cancel({ set, group: "b" }, "no use"), 7);
    await ledger.cancel({ set }, "no use");
    while ((await ledger.set(set)).is_cancelling) await ledger.endMore();
    assert.deepEqual([(await ledger.wholeGroups(set, null, 9)).length, await ledger.isOver(set)], [3, true]);
    assert.equal((await ledger.results(set, null, 99)).length, 21);
  });

  test("groups that are trees are submitted whole, and other fields that set the size of a group are refused", async (t) => {
    const { ledger, set } = await begin(t);
    await assert.rejects(ledger.submit(set, [part("a", { places: [0] })]), { code: "request_invalid", param: "index" });
    const branching = { leaves: 4 };
    for (const [more, field] of [
      [{ samples: 4, branching }, "branching"],
      [{ samples: 2, branching, over_provision: 1 }, "branching"],
      [{ samples: 2, branching, allocation: { policy: "balanced", first: 2, most: 3 } }, "branching"],
      [{ samples: 2, branching, purpose: "eval" }, "branching"],
      [{ samples: 2, branching, early_stop: 5 }, "early_stop"],
      [{ samples: 2, branching: { leaves: 4, turn: 1 } }, "branching"],
    ] as const)
      assert.equal(SetSpec.safeParse(more).error?.issues[0]?.path[0], field, JSON.stringify(more));
  });
}
