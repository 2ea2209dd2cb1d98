/** What every ledger promises of rollouts that a cut parks (`straggler_cut` with `rest: park`). */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { cutByClock } from "../../service/ledger/group-tools.ts";
import { type Claim, GroupPart, type Lease, type Ledger, SetSpec } from "../../service/ledger/index.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { nameWeights } from "../fakes/records/name-weights.ts";
import { ledgerDrivers, ledgerTest, openFor } from "./ledger-drivers.ts";

const task = (id: string) => ({ task_id: id, instruction: "Do it.", grader: { kind: "script", command: ["true"] } });
/** Two groups have one task where only the word before the slash is the same. */
const part = (key: string) => GroupPart.parse({ group_key: key, task: task(key.split("/")[0] ?? key) });
const cut = { share: 0.5, seconds: 10, rest: "park" } as const;

for (const driver of ledgerDrivers()) {
  const { place } = driver;
  const test = ledgerTest(driver);

  const fresh = async (t: TestContext, more: object = {}) => {
    const at = place();
    const open = () => openFor(t, at);
    const ledger = await open();
    const { set_id: set } = await ledger.putSet("s", SetSpec.parse({ samples: 2, straggler_cut: cut, ...more }));
    const lease = await ledger.join({ name: "n", slots: 9 });
    /** The first of its rollouts ends, and the clock cuts the others, which are returned. */
    const cutGroup = async (key: string, with_: { ledger: Ledger; lease: Lease } = { ledger, lease }): Promise<Claim[]> => {
      await with_.ledger.submit(set, [part(key)]);
      const [first, ...others] = await with_.ledger.claim(with_.lease, 9);
      assert.ok(first);
      await with_.ledger.finish(first, attemptResult());
      await at.pass(11);
      assert.equal(await with_.ledger.cutStragglers(), 1);
      return others;
    };
    const claimGroup = async (key: string): Promise<(Claim["parked"] | undefined)[]> => {
      await ledger.submit(set, [part(key)]);
      return (await ledger.claim(lease, 9)).map(({ parked }) => parked);
    };
    return { at, ledger, set, lease, cutGroup, claimGroup, open, parked: async () => (await ledger.set(set)).parked };
  };

  test("a rollout that a cut parks ends in its group, and one of a later group of its task goes on from it, once", async (t) => {
    const { ledger, set, lease, cutGroup, claimGroup, parked } = await fresh(t);
    assert.deepEqual(await parked(), { leaving: 0, waiting: 0, taken_up: 0, ended: {} });
    const [slow] = (await cutGroup("t/1")) as [Claim];
    const [group] = await ledger.wholeGroups(set, null, 9);
    assert.deepEqual(
      group?.rows.map(({ state, mask_reason, error, biases, attempt }) => [state, mask_reason, error?.code ?? null, attempt, biases]),
      [
        ["completed", null, null, 1, ["straggler_cut", "straggler_park"]],
        ["cancelled", "parked", "cancelled", 1, ["straggler_cut", "straggler_park"]],
      ],
    );
    assert.match(group?.rows[1]?.error?.message ?? "", /is parked: a rollout of a later group/);
    assert.deepEqual((await ledger.beat(lease, [slow])).stop.length, 1, "its node ends it");
    assert.deepEqual(await parked(), { leaving: 1, waiting: 0, taken_up: 0, ended: {} });
    assert.deepEqual(await claimGroup("t/2"), [null, null], "its node still ends it");

    assert.equal(await ledger.letGo({ ...slow, attempt: 2 }, "goes_on"), false, "another attempt");
    assert.equal(await ledger.letGo(slow, "goes_on"), true);
    assert.equal(await ledger.letGo(slow, "goes_on"), false);
    assert.deepEqual(await parked(), { leaving: 0, waiting: 1, taken_up: 0, ended: {} });
    assert.deepEqual(await claimGroup("other/1"), [null, null], "another task");
    const from = { rollout_id: slow.rollout_id, group_id: slow.group_id, sample_index: 1, step: null };
    assert.deepEqual(await claimGroup("t/3"), [{ from, attempt: 1 }, null]);
    assert.deepEqual(await parked(), { leaving: 0, waiting: 0, taken_up: 1, ended: {} });
    assert.deepEqual(await claimGroup("t/4"), [null, null]);
    assert.deepEqual((await ledger.nodes())[0]?.running, 8, "the one that was parked holds no slot");
  });

  test("each attempt at a rollout goes on from the parked one that the first one took up, whatever dies", async (t) => {
    const { at, ledger, set, lease, cutGroup, open } = await fresh(t);
    const [slow] = (await cutGroup("t/1")) as [Claim];
    const next = ledger.isShared ? ledger : await open();
    const again = await next.join({ name: "n", slots: 9 });
    assert.deepEqual((await next.set(set)).parked?.waiting, 1, "the node that was to end it has died");
    await next.submit(set, [part("t/2")]);
    const [taker] = await next.claim(again, 1);
    assert.equal(taker?.parked?.from.rollout_id, slow.rollout_id);
    const last = await next.join({ name: "n", slots: 9 });
    const claims = await next.claim(last, 9);
    assert.deepEqual(
      claims.map(({ index, attempt, parked }) => [index, attempt, parked?.from.rollout_id ?? null]),
      [
        [0, 2, slow.rollout_id],
        [1, 1, null],
      ],
    );
    const superseded = async () => (await next.superseded(9, 0)).map(({ rollout_id }) => rollout_id);
    await next.cutStragglers();
    await at.pass(1);
    assert.deepEqual(await superseded(), [], "its blobs are needed");
    for (const one of claims) await next.finish(one, attemptResult());
    await next.cutStragglers();
    await at.pass(1);
    assert.deepEqual((await superseded()).toSorted(), [slow.rollout_id, taker?.rollout_id].toSorted());
    assert.deepEqual((await next.set(set)).parked, { leaving: 0, waiting: 0, taken_up: 1, ended: {} });
    assert.equal((await next.beat(lease, [slow])).isLost, true);
  });

  test("a rollout whose node had died before the cut is parked too, and one that never began is not", async (t) => {
    const { at, ledger, set, lease } = await fresh(t, { samples: 3, straggler_cut: { ...cut, share: 0.1 } });
    await ledger.submit(set, [part("t/1")]);
    const [first] = (await ledger.claim(lease, 1)) as [Claim];
    await ledger.finish(first, attemptResult());
    assert.equal((await ledger.claim(lease, 1)).length, 1);
    await ledger.join({ name: "n", slots: 9 });
    await at.pass(11);
    assert.equal(await ledger.cutStragglers(), 1);
    const rows = (await ledger.results(set, null, 9)).map(({ row }) => [row.index, row.attempt, row.mask_reason]);
    assert.deepEqual(rows.toSorted(), [
      [0, 1, null],
      [1, 1, "parked"],
      [2, 0, "cancelled"],
    ]);
    assert.equal((await ledger.set(set)).parked?.waiting, 1);
  });

  test("one that was let go at nothing is dropped, and what it had taken up waits again", async (t) => {
    const { at, ledger, set, lease, parked, claimGroup } = await fresh(t, { samples: 2, straggler_cut: { ...cut, share: 0 } });
    await ledger.submit(set, [part("t/1")]);
    const slow = await ledger.claim(lease, 9);
    await at.pass(11);
    assert.equal(await ledger.cutStragglers(), 1);
    assert.deepEqual(await Promise.all(slow.map((one) => ledger.letGo(one, one.index === 1 ? "goes_on" : "nothing_sampled"))), [
      false,
      true,
    ]);
    assert.deepEqual(await parked(), { leaving: 0, waiting: 1, taken_up: 0, ended: { nothing_sampled: 1 } });

    await ledger.submit(set, [part("t/2")]);
    const [taker, other] = (await ledger.claim(lease, 9)) as [Claim, Claim];
    assert.equal(taker.parked?.from.rollout_id, slow[1]?.rollout_id);
    await ledger.finish(other, attemptResult());
    await at.pass(11);
    assert.equal(await ledger.cutStragglers(), 1);
    assert.equal(await ledger.letGo(taker, "nothing_sampled"), false);
    assert.deepEqual(await parked(), { leaving: 0, waiting: 1, taken_up: 1, ended: { nothing_sampled: 2 } });
    const [again] = await claimGroup("t/3");
    assert.equal(again?.from.rollout_id, slow[1]?.rollout_id);
  });

  test("one that is cut again is parked with the step of its first group, and takes the place of what it went on from", async (t) => {
    const bound = { max_version_lag: 3, groups_per_step: 9 };
    const { at, ledger, set, lease, cutGroup, parked } = await fresh(t, bound);
    await nameWeights(ledger, 5);
    const [slow] = (await cutGroup("t/1")) as [Claim];
    await ledger.letGo(slow, "goes_on");
    await nameWeights(ledger, 7);
    await ledger.submit(set, [part("t/2")]);
    const [taker, other] = (await ledger.claim(lease, 9)) as [Claim, Claim];
    assert.deepEqual(taker.parked?.from.step, 5);
    await ledger.finish(other, attemptResult());
    await at.pass(11);
    assert.equal(await ledger.cutStragglers(), 1);
    assert.equal(await ledger.letGo(taker, "goes_on"), true);
    await ledger.cutStragglers();
    await ledger.submit(set, [part("t/3")]);
    const [last] = (await ledger.claim(lease, 1)) as [Claim];
    assert.deepEqual(last.parked?.from, { rollout_id: taker.rollout_id, group_id: taker.group_id, sample_index: 0, step: 5 });
    assert.deepEqual(await parked(), { leaving: 0, waiting: 0, taken_up: 2, ended: {} });
  });

  test("one that is beyond the bound on staleness is not taken up, and is dropped by that name", async (t) => {
    const { ledger, cutGroup, claimGroup, parked } = await fresh(t, { max_version_lag: 1, groups_per_step: 9 });
    await nameWeights(ledger, 5);
    for (const slow of await cutGroup("t/1")) await ledger.letGo(slow, "goes_on");
    await nameWeights(ledger, 7);
    assert.deepEqual(await claimGroup("t/2"), [null, null]);
    await ledger.cutStragglers();
    assert.deepEqual(await parked(), { leaving: 0, waiting: 0, taken_up: 0, ended: { too_stale: 1 } });
  });

  test("a set holds so many parked rollouts, for so long", async (t) => {
    const { at, ledger, cutGroup, claimGroup, parked } = await fresh(t, {
      samples: 4,
      straggler_cut: { ...cut, share: 0.1, park_most: 2, park_seconds: 60 },
    });
    const slow = await cutGroup("t/1");
    for (const one of slow) await ledger.letGo(one, "goes_on");
    await ledger.cutStragglers();
    assert.deepEqual(await parked(), { leaving: 0, waiting: 2, taken_up: 0, ended: { too_many: 1 } });
    await at.pass(61);
    assert.deepEqual(await claimGroup("t/2"), [null, null, null, null]);
    await ledger.cutStragglers();
    assert.deepEqual(await parked(), { leaving: 0, waiting: 0, taken_up: 0, ended: { too_many: 1, too_old: 2 } });
  });

  test("what is parked ends with its set", async (t) => {
    const { ledger, set, cutGroup, parked } = await fresh(t);
    for (const one of await cutGroup("t/1")) await ledger.letGo(one, "goes_on");
    await ledger.cancel({ set }, "no use");
    assert.deepEqual(await parked(), { leaving: 0, waiting: 0, taken_up: 0, ended: { set_cancelled: 1 } });
    const [still] = await cutGroup("t/2");
    await ledger.drain(set);
    assert.equal(await ledger.isOver(set), true, "nothing waits for it");
    await ledger.cutStragglers();
    assert.deepEqual(await parked(), { leaving: 0, waiting: 0, taken_up: 0, ended: { set_cancelled: 1, set_over: 1 } });
    assert.equal(await ledger.letGo(still as Claim, "goes_on"), false);
  });

  test("what broke before its node heard of the cut is dropped by that name, with what it had taken up", async (t) => {
    const { at, ledger, set, lease, cutGroup, parked, claimGroup } = await fresh(t);
    for (const one of await cutGroup("t/1")) await ledger.letGo(one, "goes_on");
    await ledger.submit(set, [part("t/2")]);
    const [taker, other] = (await ledger.claim(lease, 9)) as [Claim, Claim];
    assert.ok(taker.parked);
    await ledger.finish(other, attemptResult());
    await at.pass(11);
    assert.equal(await ledger.cutStragglers(), 1);
    assert.equal(await ledger.release(taker, "sandbox_lost"), "fenced");
    assert.equal(await ledger.letGo(taker, "broken"), false);
    await ledger.cutStragglers();
    assert.deepEqual(await parked(), { leaving: 0, waiting: 0, taken_up: 1, ended: { broken: 1 } });
    assert.deepEqual(await claimGroup("t/3"), [null, null]);
  });

  test("what is cancelled is not parked by a cut that was ordered before", async (t) => {
    for (const what of ["set", "group"] as const) {
      const { at, ledger, set, lease, parked, open } = await fresh(t, { samples: 3, straggler_cut: { ...cut, share: 0.1 } });
      await ledger.submit(set, [part("t/1")]);
      const [first] = (await ledger.claim(lease, 9)) as [Claim];
      await ledger.finish(first, attemptResult());
      // The process that ordered the cut died before it had ended anything.
      await at.tell(`INSERT INTO endings (set_id, group_key, is_rest, reason, upto)
        VALUES ('${set}', 't/1', ${ledger.isShared ? "false" : "0"}, '${cutByClock}', 1000000)`);
      await ledger.cancel(what === "set" ? { set } : { set, group: "t/1" }, "no use");
      const next = ledger.isShared ? ledger : await open();
      await next.cutStragglers();
      const rows = (await next.results(set, null, 9)).map(({ row }) => row.mask_reason);
      assert.deepEqual(rows.toSorted(), ["cancelled", "cancelled", null], what);
      assert.deepEqual(await parked(), { leaving: 0, waiting: 0, taken_up: 0, ended: {} }, what);
    }
  });

  test("what was taken up by a rollout that is cancelled or fails is counted by that name, once", async (t) => {
    const { ledger, set, lease, cutGroup, parked } = await fresh(t);
    for (const one of [...(await cutGroup("t/1")), ...(await cutGroup("u/1"))]) await ledger.letGo(one, "goes_on");
    await ledger.submit(set, [part("t/2"), part("u/2")]);
    const claims = await ledger.claim(lease, 9);
    const takers = claims.filter((one) => one.parked !== null);
    const [cancelled, failed] = takers as [Claim, Claim];
    assert.equal(takers.length, 2);
    await ledger.cancel({ set, rollout: cancelled.rollout_id }, "no use");
    await ledger.finish(failed, attemptResult({ state: "failed", reward: null }));
    for (let times = 0; times < 2; times++) await ledger.cutStragglers();
    assert.deepEqual(await parked(), { leaving: 0, waiting: 0, taken_up: 2, ended: { taker_ended: 2 } });
  });

  test("a set that cancels what it cuts parks nothing, and says nothing of it", async (t) => {
    const { ledger, set, cutGroup } = await fresh(t, { straggler_cut: { share: 0.5, seconds: 10 } });
    const [slow] = await cutGroup("t/1");
    assert.equal(await ledger.letGo(slow as Claim, "goes_on"), false);
    const [, row] = (await ledger.results(set, null, 9)).map(({ row }) => row);
    assert.deepEqual([row?.mask_reason, row?.biases, (await ledger.set(set)).parked], ["cancelled", ["straggler_cut"], null]);
  });
}
