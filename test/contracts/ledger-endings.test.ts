/** What every ledger promises of ends of many: they go in parts, and whatever dies in between, each rollout ends once. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { type Claim, GroupPart, type Lease, type Ledger, SetSpec } from "../../service/ledger/index.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { ledgerDrivers, ledgerTest, openFor } from "./ledger-drivers.ts";

const task = (id: string) => ({ task_id: id, instruction: "Do it.", grader: { kind: "script", command: ["true"] } });
const part = (key: string, more: object = {}) => GroupPart.parse({ group_key: key, task: task(key), ...more });
const parts = (count: number, from = 0) => Array.from({ length: count }, (_, at) => part(`g${from + at}`));

type Begun = { ledger: Ledger; again(): Promise<Ledger>; pass(seconds: number): Promise<void>; set: string; lease: Lease };

for (const driver of ledgerDrivers()) {
  const { name, place } = driver;
  const test = ledgerTest(driver);
  /** Three rollouts end in one transaction. */
  const begin = async (t: TestContext, spec: object): Promise<Begun> => {
    const at = place();
    const open = () => openFor(t, at, 3);
    const ledger = await open();
    const { set_id } = await ledger.putSet("s", SetSpec.parse(spec));
    return { ledger, again: open, pass: at.pass, set: set_id, lease: await ledger.join({ name: "n", slots: 9 }) };
  };

  test("a cancel of many ends what runs first, and nothing of it is claimed or finished any more", async (t) => {
    const { ledger, set, lease } = await begin(t, { samples: 4 });
    await ledger.submit(set, parts(3));
    const [first, ...running] = await ledger.claim(lease, 5);
    await ledger.finish(first as Claim, attemptResult());
    const seen = ledger.ending.version;
    assert.equal(await ledger.cancel({ set }, "no use"), 11);
    assert.ok(ledger.ending.version > seen, "there is more to end");
    const state = await ledger.set(set);
    assert.deepEqual([state.is_cancelling, state.rollouts.cancelled, state.rollouts.running], [true, 3, 1]);
    assert.deepEqual(await ledger.claim(lease, 9), []);
    assert.deepEqual((await ledger.beat(lease, running)).stop, running, "also of the one that has no row yet");
    for (const one of running) assert.equal(await ledger.finish(one, attemptResult()), "fenced");
    for (const one of running) assert.equal(await ledger.release(one, null), "fenced");
    assert.deepEqual((await ledger.wholeGroups(set, null, 9)).length, 1);
    assert.deepEqual(await countsOf(ledger), [3, 3, 2]);
    const over = await ledger.set(set);
    assert.deepEqual([over.is_cancelling, over.rollouts.cancelled, over.rollouts.completed], [false, 11, 1]);
    const groups = await ledger.wholeGroups(set, null, 9);
    assert.deepEqual(
      groups.map(({ rows }) => rows.map(({ index }) => index)),
      Array.from({ length: 3 }, () => [0, 1, 2, 3]),
    );
    assert.equal((await ledger.results(set, null, 99)).length, 12);
  });

  test("the rows of a cancel are those of rollouts that end one by one", async (t) => {
    const { ledger, set, lease } = await begin(t, { samples: 4, retries: 3, early_stop: 4 });
    await ledger.submit(set, parts(2));
    const [one] = (await ledger.claim(lease, 1)) as [Claim];
    await ledger.release(one, "sandbox_error");
    const [again] = (await ledger.claim(lease, 1)) as [Claim];
    await ledger.cancel({ set, rollout: `${set}-1-3` }, "no use");
    await ledger.cancel({ set }, "no use");
    await countsOf(ledger);
    const rows = (await ledger.results(set, null, 99)).map(({ row }) => row);
    const [single, many] = [`${set}-1-3`, `${set}-1-2`].map((id) => rows.find(({ rollout_id }) => rollout_id === id));
    assert.deepEqual({ ...many, rollout_id: single?.rollout_id, index: 3, finished: 0 }, { ...single, finished: 0 });
    const ran = rows.find(({ rollout_id }) => rollout_id === again.rollout_id);
    assert.deepEqual([ran?.attempt, ran?.earlier], [2, [{ attempt: 1, node: "n", code: "sandbox_error" }]]);
    assert.ok(rows.every(({ finished }) => finished > 0));
  });

  test("what a process leaves that dies is ended by the next one, and by several at once each rollout once", async (t) => {
    const { ledger, again, set } = await begin(t, { samples: 2 });
    await ledger.submit(set, parts(20));
    assert.equal(await ledger.cancel({ set }, "no use"), 40);
    await ledger.endMore();
    const others = name === "sqlite" ? [await again()] : await Promise.all([again(), again()]);
    const all = async (one: Ledger) => {
      while ((await one.set(set)).is_cancelling) await one.endMore();
    };
    await Promise.all(others.map(all));
    const ids = (await ledger.results(set, null, 99)).map(({ row }) => row.rollout_id);
    assert.deepEqual([ids.length, new Set(ids).size], [40, 40]);
    assert.equal((await ledger.wholeGroups(set, null, 99)).length, 20);
  });

  test("a cancel that is asked for again goes on, and what is submitted meanwhile is made when it is over", async (t) => {
    const { ledger, set, lease } = await begin(t, { samples: 2 });
    await ledger.submit(set, parts(5));
    assert.equal(await ledger.cancel({ set }, "no use"), 10);
    await ledger.submit(set, [part("new")]);
    assert.deepEqual(await ledger.claim(lease, 9), []);
    await countsOf(ledger);
    assert.deepEqual(
      (await ledger.claim(lease, 9)).map(({ group_key, index }) => [group_key, index]),
      [
        ["new", 0],
        ["new", 1],
      ],
    );
    await ledger.submit(set, parts(2, 10));
    assert.equal(await ledger.cancel({ set }, "no use"), 6);
    assert.equal(await ledger.cancel({ set }, "no use"), 3, "all that are not over");
    assert.equal(await ledger.cancel({ set }, "no use"), 0);
    assert.deepEqual([(await ledger.set(set)).is_cancelling, (await ledger.results(set, null, 99)).length], [false, 16]);
  });

  test("the rest of a large group that is stopped ends in parts, and is neither claimed nor finished", async (t) => {
    const { ledger, set, lease } = await begin(t, { samples: 12, early_stop: 1 });
    await ledger.submit(set, parts(1));
    const [one, other] = (await ledger.claim(lease, 2)) as [Claim, Claim];
    await ledger.finish(one, attemptResult());
    const { rollouts, is_cancelling } = await ledger.set(set);
    assert.deepEqual([rollouts.cancelled, is_cancelling], [3, true]);
    assert.deepEqual(await ledger.claim(lease, 9), []);
    assert.deepEqual(await ledger.wholeGroups(set, null, 9), [], "not before all its rows are there");
    assert.equal(await ledger.finish(other, attemptResult()), "fenced");
    assert.deepEqual(await countsOf(ledger), [3, 3, 2]);
    assert.equal((await ledger.wholeGroups(set, null, 9))[0]?.rows.length, 12);
    assert.equal(await ledger.cutStragglers(), 0);
  });

  test("a group of an allocated set that is cancelled in parts begins none of its later rollouts", async (t) => {
    const { ledger, set, lease } = await begin(t, { samples: 6, allocation: { policy: "balanced", first: 2, most: 9 } });
    await ledger.submit(set, parts(2));
    assert.equal(await ledger.cancel({ set, group: "g0" }, "no use"), 9);
    const claims = await ledger.claim(lease, 9);
    assert.deepEqual(
      claims.map(({ group_key }) => group_key),
      ["g1", "g1"],
    );
    await countsOf(ledger);
    for (const one of claims) await ledger.finish(one, attemptResult({ reward: one.index }));
    await countsOf(ledger);
    const spared = await ledger.claim(lease, 99);
    assert.deepEqual([spared.length, new Set(spared.map(({ group_key }) => group_key)).size], [4, 1], "`samples` of the other one");
  });

  test("the groups of a drained set are whole in parts, and it is over behind the last one", async (t) => {
    const { ledger, again, set, lease } = await begin(t, { samples: 2 });
    const halves = Array.from({ length: 8 }, (_, at) => part(`g${at}`, { places: [0] }));
    await ledger.submit(set, halves);
    for (const one of await ledger.claim(lease, 8)) await ledger.finish(one, attemptResult());
    await ledger.drain(set);
    assert.deepEqual([(await ledger.wholeGroups(set, null, 99)).length, await ledger.isOver(set)], [3, false]);
    const next = await again();
    assert.deepEqual(await countsOf(next), [3, 2]);
    assert.deepEqual([(await next.wholeGroups(set, null, 99)).length, await next.isOver(set)], [8, true]);
  });

  test("the rows of a large group that expires go in parts, and no reader gets the group meanwhile", async (t) => {
    const { ledger, again, pass, set, lease } = await begin(t, { samples: 8, expire_after: { seconds: 60, unread: true } });
    await ledger.submit(set, parts(2));
    for (const one of await ledger.claim(lease, 16)) await ledger.finish(one, attemptResult());
    await ledger.expire();
    await pass(61);
    const { rollouts } = await ledger.set(set);
    assert.equal(await ledger.expireResults(null), 2, "groups");
    await assert.rejects(ledger.wholeGroups(set, null, 9), { status: 410 });
    assert.deepEqual(await ledger.wholeGroups(set, null, 9, "skip"), []);
    const next = await again();
    const left: number[] = [];
    for (; (await next.expireResults(null)) > 0; ) left.push((await next.results(set, null, 99, "skip")).length);
    assert.deepEqual([left[0], left.at(-1)], [10, 0]);
    assert.equal((await next.removals(99)).length, 16);
    const state = await next.set(set);
    assert.deepEqual([state.rollouts, state.expired?.groups, state.expired?.rollouts], [rollouts, 2, 16]);
  });

  test("what is counted is counted once, whatever ends while others look", async (t) => {
    const { ledger, again, set, lease } = await begin(t, { samples: 2, max_version_lag: 0, groups_per_step: 3 });
    await ledger.order((state, order) => ({
      ...state,
      policies: [{ order, engines: null, policy: { version: "v1", step: 1 }, engine_version: null }],
    }));
    await ledger.submit(set, parts(5));
    const claims = await ledger.claim(lease, 9);
    const counted = async (one: Ledger) => {
      const { rollouts, groups, failures } = await one.set(set);
      return [rollouts, groups, failures];
    };
    const failed = attemptResult({ state: "failed", reward: null, error: { code: "sandbox_died", message: "no" } });
    for (const one of claims.slice(0, 3)) await ledger.finish(one, one.index === 0 ? attemptResult() : failed);
    const begun = [{ held: 4, queued: 0, running: 3, completed: 2, failed: 1, cancelled: 0 }, { open: 4, whole: 1 }, { sandbox_died: 1 }];
    assert.deepEqual(await counted(ledger), begun);
    await ledger.expire();
    assert.deepEqual(await counted(ledger), begun);
    await ledger.release(claims[3] as Claim, null);
    await ledger.finish(claims[4] as Claim, attemptResult());
    const other = await again();
    const [lost] = name === "sqlite" ? [1] : [0];
    assert.deepEqual((await counted(other))[0], { held: 4, queued: 1 + lost, running: 1 - lost, completed: 3, failed: 1, cancelled: 0 });
    await Promise.all([ledger.expire(), other.expire()]);
    await ledger.cancel({ set }, "no use");
    await countsOf(other);
    await other.expire();
    assert.deepEqual(await counted(other), [
      { held: 0, queued: 0, running: 0, completed: 3, failed: 1, cancelled: 6 },
      { open: 0, whole: 5 },
      { sandbox_died: 1, cancelled: 6 },
    ]);
  });

  test("more groups than begin at once may begin, and all of them do", async (t) => {
    const { ledger, set, lease } = await begin(t, { samples: 600, max_version_lag: 1, groups_per_step: 9 });
    await ledger.submit(set, parts(4));
    await ledger.order((state, order) => {
      const policies = [{ order, engines: null, policy: { version: "v1", step: 1 }, engine_version: null }];
      return { ...state, policies };
    });
    const claims: Claim[] = [];
    for (let asked = 0; asked < 9; asked++) claims.push(...(await ledger.claim(lease, 600)));
    assert.equal(new Set(claims.map(({ rollout_id }) => rollout_id)).size, 2_400);
  });
}

/** How many end with each further part. */
async function countsOf(ledger: Ledger): Promise<number[]> {
  const counts: number[] = [];
  for (let ended = await ledger.endMore(); ended > 0; ended = await ledger.endMore()) counts.push(ended);
  return counts;
}
