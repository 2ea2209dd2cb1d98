/** What every ledger promises; a new driver is tested by being listed. */
import assert from "node:assert/strict";
import { test as nodeTest, type TestContext } from "node:test";
import fc from "fast-check";
import {
  type AttemptName,
  type Claim,
  elsewhereSeconds,
  GroupPart,
  type Lease,
  type Ledger,
  leaseSeconds,
  mostLost,
  mostLostInAll,
  NodeAnswer,
  partGroup,
  SetSpec,
} from "../../service/ledger/index.ts";
import { until } from "../fakes/machine/until.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { nameWeights } from "../fakes/records/name-weights.ts";
import { need } from "../needs.ts";
import { type LedgerPlace, ledgerDrivers } from "./ledger-drivers.ts";

const drivers = ledgerDrivers();

const spec = (more: object = {}) => SetSpec.parse({ samples: 2, ...more });
const task = (id: string) => ({ task_id: id, instruction: "Do it.", grader: { kind: "script", command: ["true"] } });
const part = (key: string, more: object = {}) => GroupPart.parse({ group_key: key, task: task(key), ...more });
const fence = (name: string, order: number) =>
  ({ fence: name, order, mode: "hold", engines: null, since: 1, acknowledged: false }) as const;
const allocation = { policy: "balanced", first: 2, most: 5 } as const;
const conflict = { code: "request_invalid", status: 409 };
const forever = new AbortController().signal;

type Does = (t: TestContext) => Promise<void>;

for (const { name, needs, searches, place } of drivers) {
  const test = (title: string, ...[options, does]: [object, Does] | [Does, undefined?]) => {
    const [more, work] = does === undefined ? [{}, options as Does] : [options, does];
    return nodeTest(title, more, async (t) => {
      if (needs === undefined || (await need(t, needs))) await work(t);
    });
  };
  const fresh = async (t: TestContext, more: object = {}) => {
    const at = place();
    const ledger = await at.open();
    t.after(() => ledger[Symbol.asyncDispose]());
    const { set_id } = await ledger.putSet("s", spec(more));
    return { at, ledger, set: set_id, lease: await ledger.join({ name: "n", slots: 4 }) };
  };
  const rowsOf = async (ledger: Ledger, set: string, after: string | null = null) => {
    const lines = await ledger.results(set, after, 1_000);
    return lines.map(({ row }) => `${row.group_key}/${row.index} #${row.attempt} ${row.state}`);
  };

  test(`${name}: what is submitted twice is there once, and other content under the same key is a conflict`, async (t) => {
    const { ledger, set } = await fresh(t);
    assert.equal((await ledger.putSet("s", spec())).set_id, set);
    await assert.rejects(ledger.putSet("s", spec({ samples: 3 })), { ...conflict, param: "key" });
    assert.equal((await ledger.submit(set, [part("a"), part("b")])).rollouts, 4);
    assert.equal((await ledger.submit(set, [part("b"), part("c")])).rollouts, 2);
    const other = part("a", { task: task("other") });
    await assert.rejects(ledger.submit(set, [part("d"), other]), { ...conflict, param: "group_key" });
    await assert.rejects(ledger.submit(set, [part("e", { places: [2] })]), { code: "request_invalid", status: 400, param: "index" });
    const { rollouts, groups } = await ledger.set(set);
    assert.deepEqual([rollouts.queued, groups], [6, { open: 3, whole: 0 }], "a refused submission leaves nothing behind");
    await assert.rejects(ledger.set("setnone"), { code: "not_found" });
  });

  test(`${name}: two namespaces may have sets of one key, which are listed, named and told apart`, async (t) => {
    const { ledger, set } = await fresh(t);
    const one = await ledger.putSet("s", spec({ samples: 3 }), "one");
    const other = await ledger.putSet("s", spec({ samples: 4 }), "other");
    assert.deepEqual([one.namespace, other.namespace, new Set([set, one.set_id, other.set_id]).size], ["one", "other", 3]);
    assert.equal((await ledger.putSet("s", spec({ samples: 3 }), "one")).set_id, one.set_id);
    await assert.rejects(ledger.putSet("s", spec({ samples: 4 }), "one"), { ...conflict, param: "key" });
    const named = await Promise.all(["", "one", "other", "none"].map((namespace) => ledger.setNamed("s", namespace)));
    assert.deepEqual(named, [set, one.set_id, other.set_id, null]);
    assert.deepEqual([await ledger.namespaceOf(set), await ledger.namespaceOf(other.set_id)], ["", "other"]);
    await assert.rejects(ledger.namespaceOf("setnone"), { code: "not_found", param: "set" });
    const listed = async (namespace?: string) => (await ledger.sets(namespace)).map(({ set_id }) => set_id);
    assert.deepEqual([await listed("one"), await listed(""), await listed("none")], [[one.set_id], [set], []]);
    assert.deepEqual((await listed()).sort(), [set, one.set_id, other.set_id].sort());
  });

  test(`${name}: the latest sets are those with open rollouts, and then the newest`, async (t) => {
    const { ledger, set, lease } = await fresh(t, { samples: 1 });
    const made: string[] = [set];
    for (const key of ["one", "two", "three"]) made.push((await ledger.putSet(key, spec({ samples: 1 }), "team")).set_id);
    for (const at of [0, 1]) await ledger.submit(made[at] as string, [part("a")]);
    const latest = async (most: number, namespace?: string) => {
      const { total, sets } = await ledger.latestSets(most, namespace);
      return [total, ...sets.map(({ set_id }) => made.indexOf(set_id))];
    };
    assert.deepEqual([(await latest(1))[0], (await latest(3, "team")).slice(0, 2)], [4, [3, 1]]);
    assert.deepEqual((await latest(9)).slice(0, 3).sort(), [0, 1, 4]);
    assert.deepEqual((await latest(9)).length, 5);
    assert.deepEqual([await latest(9, ""), await latest(9, "none")], [[1, 0], [0]]);
    for (const claim of await ledger.claim(lease, 9)) await ledger.finish(claim, attemptResult());
    assert.deepEqual(new Set((await latest(9, "team")).slice(1)), new Set([1, 2, 3]));
  });

  test(`${name}: a set's labels have a bound, and so have those of all sets of a namespace`, async (t) => {
    const { at, ledger } = await fresh(t);
    const words = (count: number) => ({
      labels: Object.fromEntries(Array.from({ length: count }, (_, at) => [`l${at}`, "x".repeat(2_000)])),
    });
    await assert.rejects(ledger.putSet("long", spec(words(40)), "one"), { code: "request_invalid", status: 413, param: "labels" });
    assert.equal(await ledger.setNamed("long", "one"), null);
    await ledger.putSet("fits", spec(words(30)), "one");
    await at.tell("UPDATE namespaces SET spec_chars = 256 * 1024 * 1024 - 60000 WHERE name = 'one'");
    await assert.rejects(ledger.putSet("more", spec(words(30)), "one"), { code: "request_invalid", status: 413, param: "labels" });
    assert.equal(await ledger.setNamed("more", "one"), null);
    await ledger.putSet("more", spec(words(30)), "other");
    assert.equal((await ledger.putSet("fits", spec(words(30)), "one")).key, "fits", "a set that is there is asked for again");
  });

  test(`${name}: groups with mixed rewards get the samples that groups with equal ones leave, and none is made beyond them`, async (t) => {
    const { ledger, set, lease } = await fresh(t, { samples: 3, allocation });
    const keys = ["equal", "mixed", "broken"];
    assert.equal(
      (
        await ledger.submit(
          set,
          keys.map((key) => part(key)),
        )
      ).rollouts,
      15,
    );
    await assert.rejects(ledger.submit(set, [part("one", { places: [0] })]), { code: "request_invalid", param: "index" });
    await ledger.drain(set);
    const failed = attemptResult({ state: "failed", reward: null, mask_reason: "sandbox_died" });
    const rewardsOf = new Map<string, (number | null)[]>(Object.entries({ equal: [1, 1], mixed: [1, 0, 0, 0], broken: [null, 0, 0] }));
    const finish = async (claims: Claim[]) => {
      for (const one of claims) {
        const reward = rewardsOf.get(one.group_key)?.[one.index] ?? null;
        await ledger.finish(one, reward === null ? failed : attemptResult({ reward }));
      }
    };
    const first = await ledger.claim(lease, 99);
    assert.equal(first.length, 6, "two of each");
    assert.deepEqual([(await ledger.set(set)).rollouts.held, (await ledger.set(set)).is_over], [9, false]);
    await finish(first);
    const more = await ledger.claim(lease, 99);
    assert.deepEqual(
      more.map(({ group_key, index, group_size }) => [group_key, index, group_size]),
      [
        ["mixed", 2, 5],
        ["mixed", 3, 5],
        ["broken", 2, 5],
      ],
      "one that the equal ones left, and none is known of the broken one",
    );
    await finish(more);
    const groups = await ledger.wholeGroups(set, null, 9);
    const told = groups.map(({ group_key, rows }) => [group_key, rows.map(({ state }) => state[1]).join("")]);
    assert.deepEqual(told, [
      ["equal", "ooaaa"],
      ["mixed", "ooooa"],
      ["broken", "aooaa"],
    ]);
    const [{ rows } = { rows: [] }] = groups;
    assert.deepEqual(
      [rows[4]?.error, rows[0]?.biases],
      [{ code: "cancelled", message: "its group got no more samples (allocation)" }, ["allocation"]],
    );
    assert.equal((await ledger.set(set)).is_over, true);
  });

  test(`${name}: rollouts that an allocation begins later have the whole time of a cut`, async (t) => {
    const straggler_cut = { share: 0, seconds: 10 };
    const { at, ledger, set, lease } = await fresh(t, { samples: 3, allocation, straggler_cut });
    await ledger.submit(set, [part("a"), part("b")]);
    const first = await ledger.claim(lease, 4);
    await at.pass(9);
    for (const one of first) await ledger.finish(one, attemptResult({ reward: one.index % 2 }));
    assert.equal((await ledger.claim(lease, 9)).length, 2, "each group has one more");
    await at.pass(9);
    assert.equal(await ledger.cutStragglers(), 0);
    await at.pass(2);
    assert.equal(await ledger.cutStragglers(), 2);
  });

  test(`${name}: a group of an allocated set with a bound is not begun because its first rollouts were cancelled`, async (t) => {
    const { ledger, set, lease } = await fresh(t, { samples: 3, allocation, max_version_lag: 0, groups_per_step: 1 });
    const { rollout_ids } = await ledger.submit(set, [part("a")]);
    for (const rollout of rollout_ids.slice(0, 2)) assert.equal(await ledger.cancel({ set, rollout }, "no use"), 1);
    assert.deepEqual(await ledger.claim(lease, 9), [], "the weights have no name with a step");
    const { queued, held } = (await ledger.set(set)).rollouts;
    assert.deepEqual([queued, held > 0], [0, true]);
  });

  test(`${name}: a group of an allocated set that is cancelled ends once, whatever waits in it`, async (t) => {
    const { ledger, set, lease } = await fresh(t, { samples: 3, allocation });
    await ledger.submit(set, [part("a"), part("b")]);
    const [one] = await ledger.claim(lease, 1);
    assert.equal(await ledger.cancel({ set, group: "a" }, "no use"), 5);
    assert.equal(await ledger.finish(one as Claim, attemptResult()), "fenced");
    for (const index of [0, 1]) await ledger.cancel({ set, rollout: `${(one as Claim).group_id.slice(0, -2)}-1-${index}` }, "no use");
    assert.deepEqual(await rowsOf(ledger, set).then((rows) => rows.length), 9, "without a reward the group gets its samples");
    assert.deepEqual(
      (await ledger.claim(lease, 9)).map(({ group_key, index }) => [group_key, index]),
      [["b", 2]],
    );
  });

  test(`${name}: a slot for evaluations takes no other set, and any other slot the set whose turn it is`, async (t) => {
    const { ledger, set, lease } = await fresh(t, { priority: 5 });
    const { set_id: own } = await ledger.putSet("eval", spec({ purpose: "eval", labels: { purpose: '"purpose":"train"' } }));
    await ledger.submit(set, [part("train")]);
    assert.deepEqual(await ledger.claim(lease, 4, "evaluations"), []);
    await ledger.submit(own, [part("eval")]);
    const keysOf = (claims: Claim[]) => claims.map(({ group_key }) => group_key);
    assert.deepEqual(keysOf(await ledger.claim(lease, 1, "evaluations")), ["eval"]);
    assert.deepEqual(keysOf(await ledger.claim(lease, 4)), ["train", "train", "eval"]);
  });

  test(`${name}: what an evaluation had in slots of its own counts in its share of the others`, async (t) => {
    const { ledger, set, lease } = await fresh(t, { samples: 6 });
    const { set_id: own } = await ledger.putSet("eval", spec({ purpose: "eval", samples: 6 }));
    await ledger.submit(set, [part("train")]);
    await ledger.submit(own, [part("eval")]);
    const keysOf = (claims: Claim[]) => claims.map(({ group_key }) => group_key);
    assert.deepEqual(keysOf(await ledger.claim(lease, 2, "evaluations")), ["eval", "eval"]);
    assert.deepEqual(keysOf(await ledger.claim(lease, 2)), ["train", "train"]);
    assert.deepEqual(keysOf(await ledger.claim(lease, 4)).toSorted(), ["eval", "eval", "train", "train"], "each has half of all slots");
  });

  test(`${name}: a set that joins begins where those of its priority are, however little a set of a lower one has had`, async (t) => {
    const { ledger, lease } = await fresh(t);
    const keysOf = (claims: Claim[]) => claims.map(({ group_key }) => group_key);
    const made = async (key: string, priority: number) => {
      const { set_id } = await ledger.putSet(key, spec({ samples: 20, priority }));
      await ledger.submit(set_id, [part(key)]);
    };
    await made("late", 0);
    await made("first", 1);
    assert.deepEqual(new Set(keysOf(await ledger.claim(lease, 8))), new Set(["first"]));
    await made("second", 1);
    assert.deepEqual(keysOf(await ledger.claim(lease, 4)).toSorted(), ["first", "first", "second", "second"]);
  });

  test(`${name}: a set that is pinned to the policy in force keeps that policy, whatever is in force later`, async (t) => {
    const { ledger, lease } = await fresh(t);
    const pinned = spec({ pinned_policy: "in_force" });
    await assert.rejects(ledger.putSet("eval", pinned), { ...conflict, param: "pinned_policy" });
    await nameWeights(ledger, 1);
    const { set_id, spec: kept } = await ledger.putSet("eval", pinned);
    assert.deepEqual(kept.pinned_policy, { version: "v1", step: 1 });
    await nameWeights(ledger, 2);
    for (const same of [pinned, spec({ pinned_policy: { version: "v1", step: 1 } })])
      assert.equal((await ledger.putSet("eval", same)).set_id, set_id);
    for (const other of [spec(), spec({ pinned_policy: { version: "v2", step: 2 } })])
      await assert.rejects(ledger.putSet("eval", other), { ...conflict, param: "key" });
    await assert.rejects(ledger.putSet("s", pinned), { ...conflict, param: "key" }, "a set without a pin gets none");
    await ledger.submit(set_id, [part("g")]);
    const [claim] = await ledger.claim(lease, 1);
    assert.deepEqual(claim?.spec.pinned_policy, { version: "v1", step: 1 }, "a node learns the policy");
  });

  test(`${name}: a set keeps what it demands of verdicts, and one that was made with less is no place for more`, async (t) => {
    const { ledger, lease } = await fresh(t);
    const { set_id } = await ledger.putSet("strict", spec({ min_tier: "T2" }));
    for (const same of [spec({ min_tier: "T2" }), spec({ min_tier: "T1" }), spec()])
      assert.deepEqual([(await ledger.putSet("strict", same)).set_id, (await ledger.specOf(set_id)).min_tier], [set_id, "T2"]);
    await assert.rejects(ledger.putSet("strict", spec({ min_tier: "T1", samples: 3 })), { ...conflict, param: "key" });
    for (const more of [spec({ min_tier: "T3" }), spec({ admitted_only: true })])
      await assert.rejects(ledger.putSet("strict", more), { ...conflict, message: /was made with min_tier T2, and .* is demanded now/ });
    await assert.rejects(ledger.putSet("s", spec({ min_tier: "T0" })), { ...conflict, message: /was made with no demands/ });
    await ledger.submit(set_id, [part("g")]);
    const [claim] = await ledger.claim(lease, 1);
    assert.equal(claim?.spec.min_tier, "T2", "a node learns it");
  });

  test(`${name}: what figures are made of comes back with the row, and a row of an earlier version has none`, async (t) => {
    const { ledger, set, lease } = await fresh(t, { samples: 3 });
    await ledger.submit(set, [part("g")]);
    const counted = {
      row_tokens: 9,
      tree_tokens: 6,
      prompt_tokens: 5,
      cached_tokens: 0,
      excluded: { undelivered: 4 },
      causes: { edited: 1 },
      engine_spans: [{ engine: "a", step: 3, times: [1_000, 20] }],
    };
    const figures = { data_source: "s", is_cut: true, edges: { root: 1, exact: 2 }, ...counted };
    const { figures: _, ...older } = attemptResult();
    const [one, other, third] = await ledger.claim(lease, 3);
    const { engine_spans: _spans, excluded: _excluded, causes: _causes, ...before } = figures;
    await ledger.finish(third as Claim, attemptResult({ figures: before as typeof figures }));
    await ledger.finish(one as Claim, attemptResult({ figures }));
    await ledger.finish(other as Claim, older as ReturnType<typeof attemptResult>);
    const [{ rows } = { rows: [] }] = await ledger.wholeGroups(set, null, 9);
    assert.deepEqual(
      rows.map((row) => row.figures),
      [figures, null, { ...figures, engine_spans: null, excluded: null, causes: null }],
    );
  });

  test(`${name}: rollouts join their group one by one, and the whole group comes when its last place is over`, async (t) => {
    const { ledger, set, lease } = await fresh(t);
    const first = await ledger.submit(set, [part("g", { places: [1] })]);
    assert.deepEqual((await ledger.submit(set, [part("g", { places: [1] })])).rollout_ids, first.rollout_ids);
    const [one] = await ledger.claim(lease, 9);
    assert.equal(await ledger.finish(one as Claim, attemptResult()), "accepted");
    assert.deepEqual(await ledger.wholeGroups(set, null, 9), []);
    await ledger.submit(set, [part("g")]);
    const [other] = await ledger.claim(lease, 9);
    assert.equal((other as Claim).index, 0);
    await ledger.finish(other as Claim, attemptResult({ state: "failed", reward: null, error: { code: "sandbox_error", message: "no" } }));
    const groups = await ledger.wholeGroups(set, null, 9);
    assert.deepEqual(
      groups.map(({ group_key, rows }) => [group_key, rows.map(({ index, state }) => [index, state])]),
      [
        [
          "g",
          [
            [0, "failed"],
            [1, "completed"],
          ],
        ],
      ],
    );
    assert.deepEqual((await ledger.set(set)).failures, { sandbox_error: 1 });
  });

  test(`${name}: an attempt that is no longer the current one writes nothing`, async (t) => {
    const { ledger, set, lease } = await fresh(t, { samples: 1 });
    await ledger.submit(set, [part("a")]);
    const [first] = await ledger.claim(lease, 1);
    assert.equal(await ledger.release(first as Claim, "sandbox_error"), "queued");
    const [second] = await ledger.claim(lease, 1);
    assert.deepEqual([(second as Claim).attempt, (second as Claim).failures], [2, 1]);
    assert.equal(await ledger.finish(first as Claim, attemptResult()), "fenced");
    assert.equal(await ledger.release(first as Claim, null), "fenced");
    assert.deepEqual((await ledger.beat(lease, [first as Claim, second as Claim])).stop, [first]);
    assert.equal(await ledger.finish(second as Claim, attemptResult()), "accepted");
    assert.equal(await ledger.finish(second as Claim, attemptResult({ reward: 0 })), "fenced");
    assert.deepEqual(await rowsOf(ledger, set), ["a/0 #2 completed"]);
    assert.equal((await ledger.result(set, (first as Claim).rollout_id))?.attempt, 2);
    await assert.rejects(ledger.result(set, "none"), { code: "not_found" });
  });

  test(`${name}: what a node broke goes to another one, and the row says who broke it and why`, async (t) => {
    const { at, ledger, set, lease } = await fresh(t, { samples: 2, retries: 9 });
    await ledger.submit(set, [part("a")]);
    const [first] = await ledger.claim(lease, 1);
    await ledger.release(first as Claim, "sandbox_error");
    const indexes = async (by: Lease) => (await ledger.claim(by, 9)).map(({ index, attempt }) => `${index} #${attempt}`);
    const other = await ledger.join({ name: "other", slots: 9 });
    assert.deepEqual(await indexes(lease), ["1 #1"], "it waits for the other node");
    assert.deepEqual(await indexes(other), ["0 #2"]);
    const second = { rollout_id: (first as Claim).rollout_id, attempt: 2 };
    await ledger.release(second, null);
    assert.deepEqual(await indexes(other), ["0 #3"], "what is given back may come back");
    await ledger.release({ ...second, attempt: 3 }, "image_pull_failed");
    assert.deepEqual(await indexes(other), []);
    const back = await ledger.join({ name: "n", slots: 9 });
    await at.pass(elsewhereSeconds + 1);
    for (const one of [back, other]) await ledger.beat(one, []);
    assert.deepEqual(await indexes(other), ["0 #4", "1 #2"], "the other node had its time");
    await ledger.release({ ...second, attempt: 4 }, "sandbox_error");
    assert.deepEqual(await indexes(other), []);
    await ledger.drainNode("n");
    // A ledger that found nothing asks again after a beat at the latest.
    const taken: string[] = [];
    await until(async () => taken.push(...(await indexes(other))) > 0);
    assert.deepEqual(taken, ["0 #5"], "there is no other node that would take it");
    await ledger.finish({ ...second, attempt: 5 }, attemptResult());
    const row = await ledger.result(set, second.rollout_id);
    assert.deepEqual(row?.earlier, [
      { attempt: 1, node: lease.node, code: "sandbox_error" },
      { attempt: 3, node: "other", code: "image_pull_failed" },
      { attempt: 4, node: "other", code: "sandbox_error" },
    ]);
    const lost = await ledger.join({ name: "other", slots: 9 });
    const [again] = await ledger.claim(lost, 9);
    await ledger.finish(again as Claim, attemptResult());
    assert.deepEqual((await ledger.result(set, (again as Claim).rollout_id))?.earlier, [
      { attempt: 1, node: "n", code: "node_lost" },
      { attempt: 2, node: "other", code: "node_lost" },
    ]);
  });

  test(`${name}: what is cancelled ends in a row at once, and its attempt is told to stop`, async (t) => {
    const { ledger, set, lease } = await fresh(t);
    await ledger.submit(set, [part("a"), part("b"), part("c")]);
    const [running] = await ledger.claim(lease, 1);
    assert.equal(await ledger.cancel({ set, group: "a" }, "stale"), 2);
    assert.equal(await ledger.cancel({ set, group: "a" }, "stale"), 0);
    assert.deepEqual((await ledger.beat(lease, [running as Claim])).stop, [running]);
    assert.equal(await ledger.finish(running as Claim, attemptResult()), "fenced");
    const last = (await ledger.submit(set, [part("c")])).rollout_ids[1] as string;
    assert.equal(await ledger.cancel({ set, rollout: last }, "stale"), 1);
    assert.equal(await ledger.cancel({ set }, "over"), 3);
    assert.deepEqual(await rowsOf(ledger, set), [
      "a/0 #1 cancelled",
      "a/1 #0 cancelled",
      "c/1 #0 cancelled",
      "b/0 #0 cancelled",
      "b/1 #0 cancelled",
      "c/0 #0 cancelled",
    ]);
    await assert.rejects(ledger.cancel({ set, group: "z" }, ""), { code: "not_found" });
    await assert.rejects(ledger.cancel({ set, rollout: "z" }, ""), { code: "not_found" });
  });

  test(`${name}: a drained set takes nothing new, and its groups are whole with what they have`, async (t) => {
    const { ledger, set, lease } = await fresh(t);
    await ledger.submit(set, [part("a", { places: [0] }), part("b", { places: [1] })]);
    const [a, b] = await ledger.claim(lease, 2);
    await ledger.finish(a as Claim, attemptResult());
    assert.equal(await ledger.isOver(set), false);
    assert.equal((await ledger.drain(set)).is_drained, true);
    assert.equal(await ledger.isOver(set), false, "a rollout runs");
    assert.equal((await ledger.wholeGroups(set, null, 9)).length, 1);
    await assert.rejects(ledger.submit(set, [part("a")]), conflict);
    assert.equal((await ledger.submit(set, [part("a", { places: [0] })])).rollouts, 0);
    await ledger.finish(b as Claim, attemptResult());
    assert.deepEqual(
      (await ledger.wholeGroups(set, null, 9)).map(({ group_key }) => group_key),
      ["a", "b"],
    );
    assert.equal(await ledger.isOver(set), true);
    assert.equal((await ledger.set(set)).is_over, true);
    await assert.rejects(ledger.isOver("none"), { code: "not_found" });
  });

  test(`${name}: a killed process loses no commit; what ran is the next attempt of the next process`, async (t) => {
    const { at, ledger, set, lease } = await fresh(t);
    await ledger.submit(set, [part("a")]);
    const [a, b] = await ledger.claim(lease, 2);
    await ledger.finish(a as Claim, attemptResult());
    const { cursor } = (await ledger.results(set, null, 9))[0] as { cursor: string };
    await ledger.order((state, order) => ({ ...state, fences: [fence("f", order)] }));
    await at.pass(leaseSeconds + 1);
    const next = await at.open();
    t.after(() => next[Symbol.asyncDispose]());
    await next.expire();
    assert.equal(next.id, ledger.id);
    assert.equal((await next.control()).fences[0]?.fence, "f");
    assert.equal(await next.finish(b as Claim, attemptResult()), "fenced");
    assert.equal((await next.beat(lease, [])).isLost, true);
    const lease2 = await next.join({ name: "n", slots: 1 });
    assert.deepEqual(await next.claim(lease, 1), [], "the lease was the dead process's");
    const [again] = await next.claim(lease2, 9);
    assert.deepEqual([(again as Claim).rollout_id, (again as Claim).attempt], [(b as Claim).rollout_id, 2]);
    await next.finish(again as Claim, attemptResult());
    assert.deepEqual(await rowsOf(next, set, cursor), ["a/1 #2 completed"]);
  });

  test(`${name}: a node that misses its lease loses its attempts, and one that lives does not`, async (t) => {
    const { at, ledger, set, lease } = await fresh(t, { samples: 1 });
    await ledger.submit(set, [part("a"), part("b")]);
    const other = await ledger.join({ name: "other", slots: 1 });
    const [a] = await ledger.claim(lease, 1);
    const [b] = await ledger.claim(other, 1);
    await at.pass(leaseSeconds - 1);
    await ledger.beat(lease, [a as Claim]);
    await at.pass(2);
    assert.deepEqual(await ledger.expire(), ["other"]);
    assert.equal((await ledger.beat(other, [b as Claim])).isLost, true);
    assert.equal(await ledger.finish(b as Claim, attemptResult()), "fenced");
    assert.equal(await ledger.finish(a as Claim, attemptResult()), "accepted");
    assert.deepEqual(
      (await ledger.claim(lease, 9)).map(({ group_key, attempt }) => [group_key, attempt]),
      [["b", 2]],
    );
  });

  test(`${name}: places at an engine are one node's at a time: given back before they are given, and with a lease that is over`, async (t) => {
    const { at, ledger, lease: a } = await fresh(t);
    const use = (waiting: number, held: number) => ({ name: "e", server: "s", limit: 4, used: 0, waiting, held });
    const granted = async (lease: Lease, waiting: number, held: number) =>
      (await ledger.grantPlaces(lease, [use(waiting, held)]))[0]?.granted;
    assert.equal(await granted(a, 1, 0), 4, "a node alone has all of them");
    const b = await ledger.join({ name: "other", slots: 1 });
    assert.equal(await granted(b, 3, 0), 0);
    assert.equal(await granted(a, 1, 4), 1, "the others are wanted elsewhere");
    assert.equal(await granted(b, 3, 0), 0, "and were not given back yet");
    assert.deepEqual(
      (await ledger.nodes()).map(({ name, engines }) => [name, engines[0]?.held, engines[0]?.granted, engines[0]?.waiting]),
      [
        ["n", 4, 1, 1],
        ["other", 0, 0, 3],
      ],
    );
    assert.equal(await granted(a, 1, 1), 1);
    const both = await Promise.all([granted(b, 3, 0), granted(a, 1, 1)]);
    assert.deepEqual(both, [3, 1]);
    await at.pass(leaseSeconds - 1);
    await ledger.beat(a, []);
    await at.pass(2);
    assert.deepEqual(await ledger.expire(), ["other"]);
    assert.equal(await granted(b, 3, 3), undefined, "a lease that is over has no places");
    assert.equal(await granted(a, 9, 1), 4);
    const again = await ledger.join({ name: "n", slots: 1 });
    assert.deepEqual((await ledger.nodes())[0]?.engines, [], "places of an earlier life are free");
    assert.deepEqual([await granted(a, 9, 4), await granted(again, 9, 0)], [undefined, 4], "an earlier life has none");
  });

  test(`${name}: a node that leaves is none of the nodes, and what it had is queued again at once`, async (t) => {
    const { ledger, set, lease } = await fresh(t, { samples: 1 });
    await ledger.submit(set, [part("a")]);
    const [a] = await ledger.claim(lease, 1);
    await ledger.leave(lease);
    assert.deepEqual(await ledger.nodes(), []);
    assert.equal(await ledger.finish(a as Claim, attemptResult()), "fenced");
    const next = await ledger.join({ name: "n", slots: 1 });
    await ledger.leave(lease);
    assert.equal((await ledger.beat(next, [])).isLost, false, "an earlier life of the node has nothing to leave");
    const [again] = await ledger.claim(next, 1);
    assert.deepEqual([again?.rollout_id, again?.attempt], [a?.rollout_id, 2]);
  });

  test(`${name}: a rollout under which nodes die again and again ends as failed`, async (t) => {
    const { ledger, set } = await fresh(t, { samples: 1 });
    await ledger.submit(set, [part("a")]);
    for (let at = 0; at < mostLost; at++) assert.equal((await ledger.claim(await ledger.join({ name: "n", slots: 1 }), 1)).length, 1);
    assert.deepEqual(await ledger.claim(await ledger.join({ name: "n", slots: 1 }), 1), []);
    assert.deepEqual(await rowsOf(ledger, set), [`a/0 #${mostLost} failed`]);
  });

  test(`${name}: blameless deaths end a rollout only when all its deaths are too many`, async (t) => {
    const { ledger, set } = await fresh(t, { samples: 1 });
    const { rollout_ids } = await ledger.submit(set, [part("a"), part("b")]);
    const rollout_id = rollout_ids[0] ?? "";
    let blameless: AttemptName[] = [];
    for (let at = 1; at <= mostLostInAll; at++) {
      const claims = await ledger.claim(await ledger.join({ name: "n", slots: 2, blameless }), 2);
      // Reported twice, and for an attempt that never existed: each death is cleared once.
      blameless = [...blameless.slice(-1), { rollout_id, attempt: at }, { rollout_id, attempt: 99 }];
      assert.deepEqual(
        claims.map((claim) => claim.rollout_id),
        at <= mostLost ? rollout_ids : [rollout_id],
        `life ${at}`,
      );
    }
    assert.deepEqual(await ledger.claim(await ledger.join({ name: "n", slots: 2, blameless }), 2), []);
    assert.deepEqual(await rowsOf(ledger, set), [`b/0 #${mostLost} failed`, `a/0 #${mostLostInAll} failed`]);
    const earlier = (await ledger.result(set, rollout_id))?.earlier ?? [];
    assert.equal(earlier.filter((one) => one.blameless).length, mostLostInAll - 1);
  });

  test(`${name}: the last death before a rollout ends is not held against it either, where the node says so`, async (t) => {
    const { ledger, set } = await fresh(t, { samples: 1 });
    const { rollout_ids } = await ledger.submit(set, [part("a")]);
    for (let at = 0; at < mostLost; at++) await ledger.claim(await ledger.join({ name: "n", slots: 1 }), 1);
    const blameless = [{ rollout_id: rollout_ids[0] ?? "", attempt: mostLost }];
    assert.equal((await ledger.claim(await ledger.join({ name: "n", slots: 1, blameless }), 1)).length, 1);
    assert.deepEqual(await rowsOf(ledger, set), []);
    await ledger.join({ name: "n", slots: 1 });
    assert.deepEqual(await rowsOf(ledger, set), [`a/0 #${mostLost + 1} failed`], "the next one is");
  });

  test(`${name}: a node that comes back after its lease says which deaths are not held against its rollouts, of its own alone`, async (t) => {
    const { at, ledger, set, lease } = await fresh(t, { samples: 1 });
    await ledger.submit(set, [part("a")]);
    const [claim] = await ledger.claim(lease, 1);
    await at.pass(leaseSeconds + 1);
    await until(async () => (await ledger.expire()).includes("n"));
    const blameless = [{ rollout_id: claim?.rollout_id ?? "", attempt: 1 }];
    await ledger.join({ name: "other", slots: 1, blameless });
    const [again] = await ledger.claim(await ledger.join({ name: "n", slots: 1, blameless }), 1);
    await ledger.finish(again as Claim, attemptResult());
    assert.deepEqual((await ledger.result(set, claim?.rollout_id ?? ""))?.earlier, [
      { attempt: 1, node: "n", code: "node_lost", blameless: true },
    ]);
  });

  test(`${name}: leases that end while their node lives end no rollout, and those of silent nodes do, one later`, async (t) => {
    const { at, ledger, set } = await fresh(t, { samples: 1 });
    const [slow = "", silent = ""] = (await ledger.submit(set, [part("a"), part("b")])).rollout_ids;
    for (let life = 1; life <= mostLost + 1; life++) {
      const blameless = [{ rollout_id: slow, attempt: life - 1 }];
      const claims = await ledger.claim(await ledger.join({ name: "n", slots: 2, blameless }), 2);
      assert.deepEqual(
        claims.map(({ rollout_id, attempt }) => [rollout_id, attempt]),
        [slow, silent].map((id) => [id, life]),
      );
      await at.pass(leaseSeconds + 1);
      await until(async () => (await ledger.expire()).includes("n"));
    }
    assert.deepEqual(await rowsOf(ledger, set), [`b/0 #${mostLost + 1} failed`]);
  });

  test(`${name}: a rollout that a node died of is set aside once, whatever node has it by then`, async (t) => {
    const { ledger, set, lease } = await fresh(t);
    await ledger.submit(set, [part("a")]);
    const [running] = await ledger.claim(lease, 1);
    const { rollout_ids } = await ledger.submit(set, [part("b", { places: [0] })]);
    assert.equal(await ledger.setAside(running?.rollout_id ?? "", "the process ended by it"), true);
    assert.equal(await ledger.setAside(running?.rollout_id ?? "", "again"), false);
    assert.equal(await ledger.setAside("none", "nothing"), false);
    assert.equal(await ledger.finish(running as Claim, attemptResult()), "fenced");
    assert.deepEqual((await ledger.beat(lease, [running as Claim])).stop, [running], "its attempt is told to stop");
    assert.equal(await ledger.setAside(rollout_ids[0] ?? "", "queued"), true);
    assert.deepEqual(await rowsOf(ledger, set), ["a/0 #1 failed", "b/0 #0 failed"]);
    const [first] = await ledger.results(set, null, 9);
    assert.deepEqual(first?.row.error, {
      code: "rollout_set_aside",
      message: "the process ended by it. It is set aside; submit its task in a new group to run it again",
    });
    assert.equal((await ledger.claim(lease, 9)).length, 1, "its siblings are not");
  });

  test(`${name}: the higher priority goes first, and equals share by their weight`, async (t) => {
    const { ledger, set: light, lease } = await fresh(t, { samples: 1 });
    const heavy = (await ledger.putSet("heavy", spec({ samples: 1, weight: 3 }))).set_id;
    const urgent = (await ledger.putSet("urgent", spec({ samples: 1, priority: 1 }))).set_id;
    const many = Array.from({ length: 20 }, (_, at) => part(`g${at}`));
    for (const set of [light, heavy]) await ledger.submit(set, many);
    await ledger.submit(urgent, many.slice(0, 2));
    const order = (await ledger.claim(lease, 14)).map(({ set_id }) => set_id);
    assert.deepEqual(order.slice(0, 2), [urgent, urgent]);
    assert.equal(order.filter((set) => set === heavy).length, 9);
    await ledger.drainNode("n");
    assert.equal((await ledger.beat(lease, [])).isDraining, true);
    assert.deepEqual(await ledger.claim(lease, 1), []);
  });

  test(`${name}: a cursor of another set, of the other kind or of nothing at all is refused`, async (t) => {
    const { ledger, set, lease } = await fresh(t, { samples: 1 });
    const other = (await ledger.putSet("other", spec())).set_id;
    await ledger.submit(set, [part("a")]);
    for (const claim of await ledger.claim(lease, 1)) await ledger.finish(claim, attemptResult());
    const { cursor } = (await ledger.results(set, null, 1))[0] as { cursor: string };
    const wrong = { code: "request_invalid", status: 400, param: "after" };
    await assert.rejects(ledger.results(other, cursor, 1), wrong);
    await assert.rejects(ledger.wholeGroups(set, cursor, 1), wrong);
    for (const text of ["", "7", "__proto__", `${cursor}0000000000000000`]) await assert.rejects(ledger.results(set, text, 1), wrong, text);
    await ledger.keep("trainer", set, { cursor, step: null });
    await assert.rejects(ledger.keep("trainer", other, { cursor, step: null }), wrong);
    assert.deepEqual((await ledger.set(set)).consumers, { trainer: cursor });
  });

  test(`${name}: a reader that waits is woken by a result, and by its signal`, async (t) => {
    const { ledger, set, lease } = await fresh(t, { samples: 1 });
    await ledger.submit(set, [part("a")]);
    const [claim] = await ledger.claim(lease, 1);
    const seen = ledger.version;
    const waiting = ledger.changed(seen, forever);
    await ledger.finish(claim as Claim, attemptResult());
    assert.ok((await waiting) > seen);
    await until(async () => {
      const before = ledger.version;
      if ((await rowsOf(ledger, set)).length === 1) return true;
      await ledger.changed(before, t.signal);
      return false;
    });
    const open = ledger.version;
    assert.equal(await ledger.isOver(set), false);
    const drained = ledger.changed(open, forever);
    await ledger.drain(set);
    assert.ok((await drained) > open, "a set that has ended without another result");
    const stop = new AbortController();
    const late = ledger.changed(ledger.version, stop.signal);
    stop.abort(new Error("left"));
    await assert.rejects(late, /left/);
    const tooLate = ledger.changed(ledger.version, stop.signal).catch((error: unknown) => String(error));
    assert.match(String(await tooLate), /left/, "nothing is thrown before there is a promise");
  });

  test(`${name}: orders are numbered one after another, and one that is refused changes nothing`, async (t) => {
    const { ledger } = await fresh(t);
    const names = Array.from({ length: 5 }, (_, at) => `f${at}`);
    await Promise.all(names.map((one) => ledger.order((state, order) => ({ ...state, fences: [...state.fences, fence(one, order)] }))));
    const refuse = () => {
      throw new Error("refused");
    };
    await assert.rejects(ledger.order(refuse), /refused/);
    const { order, fences } = await ledger.control();
    assert.deepEqual([order, fences.map((one) => one.order)], [5, [1, 2, 3, 4, 5]]);
    assert.deepEqual(fences.map((one) => one.fence).toSorted(), names);
  });

  test(`${name}: an order wakes the nodes, and their answers are heard while they have their lease`, async (t) => {
    const { at, ledger, lease } = await fresh(t);
    const other = await ledger.join({ name: "other", slots: 1 });
    const [ordered, answered] = [ledger.ordered.version, ledger.answered.version];
    await ledger.order((state, order) => ({ ...state, fences: [fence("f", order)] }));
    assert.ok((await ledger.ordered.after(ordered, t.signal)) > ordered);
    const report = { order: 1, answers: { 1: NodeAnswer.parse({ engines: ["e"], running: 2 }) } };
    assert.deepEqual(await ledger.reports(), [
      { node: "n", report: null },
      { node: "other", report: null },
    ]);
    await ledger.report(lease, report);
    assert.ok((await ledger.answered.after(answered, t.signal)) > answered);
    assert.deepEqual((await ledger.reports())[0], { node: "n", report });
    await ledger.leave(other);
    assert.deepEqual(await ledger.reports(), [{ node: "n", report }], "a node that left has nothing to answer");
    const again = await ledger.join({ name: "n", slots: 4 });
    await ledger.report(lease, report);
    assert.deepEqual(await ledger.reports(), [{ node: "n", report: null }], "an earlier life of the node is not heard");
    await at.pass(leaseSeconds + 1);
    assert.deepEqual(await ledger.expire(), ["n"]);
    await ledger.report(again, report);
    assert.deepEqual(await ledger.reports(), []);
  });

  const admitted = async (ledger: Ledger, lease: Lease) => (await ledger.claim(lease, 99)).map(({ group_key }) => group_key);

  test(`${name}: a set with a bound begins as many groups as the trainer's step allows, and nothing before the weights have a step`, async (t) => {
    const { at, ledger, set, lease } = await fresh(t, { samples: 1, max_version_lag: 1, groups_per_step: 2 });
    await ledger.submit(
      set,
      ["a", "b", "c", "d", "e", "f", "g", "h"].map((key) => part(key)),
    );
    assert.deepEqual(await admitted(ledger, lease), []);
    assert.deepEqual((await ledger.set(set)).admission, { policy_step: null, groups_begun: 0, groups_allowed: 0, groups_held: 8 });
    await nameWeights(ledger, null);
    assert.deepEqual(await admitted(ledger, lease), [], "a name without a step");
    const seen = ledger.claimable.version;
    await nameWeights(ledger, 7);
    assert.ok((await ledger.claimable.after(seen, t.signal)) > seen, "a new step wakes those that claim");
    const first = await ledger.claim(lease, 99);
    assert.deepEqual(
      first.map(({ group_key }) => group_key),
      ["a", "b", "c", "d"],
    );
    assert.deepEqual((await ledger.set(set)).rollouts, { held: 4, queued: 0, running: 4, completed: 0, failed: 0, cancelled: 0 });
    await nameWeights(ledger, 40, ["judge"]);
    assert.deepEqual(await admitted(ledger, lease), [], "an engine of its own says nothing of the policy");
    for (const claim of first.slice(0, 3)) await ledger.finish(claim, attemptResult());
    await nameWeights(ledger, 8);
    assert.deepEqual(await admitted(ledger, lease), [], "d may be overtaken by no more groups than may be trained before it");
    await ledger.finish(first[3] as Claim, attemptResult({ oldest_step: 7, newest_step: 8 }));
    assert.deepEqual(await admitted(ledger, lease), ["e", "f"]);
    const rows = await ledger.results(set, null, 9);
    const ofD = rows.at(-1)?.row;
    assert.deepEqual([ofD?.policy_step, ofD?.lag, ofD?.stale], [8, 1, false]);
    assert.deepEqual([rows[0]?.row.lag, rows[0]?.row.stale], [null, null], "an unknown step has no lag");

    const next = await at.open();
    t.after(() => next[Symbol.asyncDispose]());
    const lease2 = await next.join({ name: "n", slots: 9 });
    assert.deepEqual(await admitted(next, lease2), ["e", "f"], "what a killed node had is begun again, and no more");
    const wholes = await next.wholeGroups(set, null, 9);
    const { cursor } = wholes.at(-1) as { cursor: string };
    await next.keep("trainer", set, { cursor, step: null });
    assert.deepEqual(await admitted(next, lease2), [], "a cursor alone says nothing of the training");
    await next.keep("trainer", set, { cursor, step: 8 });
    assert.deepEqual(await admitted(next, lease2), ["g", "h"], "four groups were taken before step 8, and four more may be begun");
    assert.equal((await next.set(set)).admission?.groups_allowed, 8);
  });

  test(`${name}: a group that is cancelled before it is begun takes a place, and one that joins a begun group does not wait`, async (t) => {
    const { ledger, set, lease } = await fresh(t, { max_version_lag: 0, groups_per_step: 1 });
    await nameWeights(ledger, 0);
    await ledger.submit(set, [part("a", { places: [0] }), part("b"), part("c")]);
    assert.deepEqual(await admitted(ledger, lease), ["a"]);
    await ledger.submit(set, [part("a")]);
    assert.deepEqual(await admitted(ledger, lease), ["a"]);
    assert.equal(await ledger.cancel({ set, group: "b" }, "no use"), 2);
    assert.equal((await ledger.wholeGroups(set, null, 9)).length, 1);
    await nameWeights(ledger, 1);
    assert.deepEqual(await admitted(ledger, lease), [], "b was the group of a step");
    await ledger.drain(set);
    assert.equal(await ledger.isOver(set), false, "c waits for a later step");
    await nameWeights(ledger, 2);
    assert.deepEqual(await admitted(ledger, lease), ["c", "c"]);
  });

  test(`${name}: of an over-provisioned group the first results that stand are enough, and the others end as cancelled`, async (t) => {
    const { ledger, set, lease } = await fresh(t, { samples: 2, over_provision: 2 });
    assert.equal((await ledger.submit(set, [part("a"), part("b")])).rollouts, 8);
    await assert.rejects(ledger.submit(set, [part("c", { places: [4] })]), { code: "request_invalid", param: "index" });
    const claims = await ledger.claim(lease, 4);
    assert.equal(claims[0]?.group_size, 2);
    await ledger.finish(claims[1] as Claim, attemptResult({ mask_reason: "cut_by_the_clock_while_the_engine_was_slow" }));
    await ledger.finish(claims[3] as Claim, attemptResult());
    assert.deepEqual(await ledger.wholeGroups(set, null, 9), [], "one result stands");
    await ledger.finish(claims[0] as Claim, attemptResult());
    const [group, more] = await ledger.wholeGroups(set, null, 9);
    assert.equal(more, undefined);
    const { results, spare } = partGroup(group?.rows ?? [], group?.group_size ?? 0);
    const said = ({ index, state }: { index: number; state: string }) => `${index} ${state}`;
    assert.deepEqual(
      [results.map(said), spare.map(said)],
      [
        ["0 completed", "3 completed"],
        ["1 completed", "2 cancelled"],
      ],
    );
    assert.match(spare[1]?.error?.message ?? "", /2 results of its group stand/);
    assert.deepEqual(results[0]?.biases, ["over_provision"]);
    assert.deepEqual((await ledger.beat(lease, [claims[2] as Claim])).stop, [claims[2]]);
    assert.equal((await ledger.claim(lease, 9)).length, 4);
  });

  test(`${name}: a rollout that joins a group that has ended early ends as cancelled, and the group is given once`, async (t) => {
    const { ledger, set, lease } = await fresh(t, { samples: 3, early_stop: 1 });
    await ledger.submit(set, [part("a", { places: [0] })]);
    for (const claim of await ledger.claim(lease, 1)) await ledger.finish(claim, attemptResult());
    const [group] = await ledger.wholeGroups(set, null, 9);
    assert.equal(group?.rows.length, 1);
    await ledger.submit(set, [part("a")]);
    assert.deepEqual(await rowsOf(ledger, set), ["a/0 #1 completed", "a/1 #0 cancelled", "a/2 #0 cancelled"]);
    assert.deepEqual(await ledger.wholeGroups(set, group?.cursor ?? null, 9), []);
  });

  test(`${name}: the clock of a group runs from its share of results on, and not while a fence is shut`, async (t) => {
    const { at, ledger, set, lease } = await fresh(t, { samples: 2, straggler_cut: { share: 0.5, seconds: 10 } });
    await ledger.submit(set, [part("a")]);
    const [one] = await ledger.claim(lease, 1);
    await at.pass(20);
    assert.equal(await ledger.cutStragglers(), 0, "nothing of it stands");
    await ledger.finish(one as Claim, attemptResult());
    assert.equal(await ledger.cutStragglers(), 0);
    await at.pass(11);
    await ledger.order((state, order) => ({ ...state, fences: [{ ...fence("f", order), since: Date.now() }] }));
    assert.equal(await ledger.cutStragglers(), 0, "a fence is shut");
    await ledger.order((state) => ({ ...state, fences: [] }));
    assert.equal(await ledger.cutStragglers(), 1);
    assert.deepEqual(await rowsOf(ledger, set), ["a/0 #1 completed", "a/1 #0 cancelled"]);
    assert.deepEqual(
      (await ledger.wholeGroups(set, null, 9))[0]?.rows.map(({ biases }) => biases),
      [["straggler_cut"], ["straggler_cut"]],
    );
  });

  test(`${name}: whatever is submitted, cancelled, killed and read in whatever order, no row is lost or doubled`, {
    timeout: 300_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 60, size: "max" }),
        fc.record({ isAllocated: fc.boolean(), isStopped: fc.boolean(), atOnce: fc.constantFrom(1, 2, 1_000) }),
        (steps, kind) => replay(place(), steps, kind),
      ),
      { numRuns: searches },
    );
  });
}

for (const { name, needs, searches, place } of drivers)
  nodeTest(
    `${name}: a trainer that keeps its rhythm trains nothing beyond the bound, and never waits for ever`,
    { timeout: 120_000 },
    async (t) => {
      if (needs !== undefined && !(await need(t, needs))) return;
      await fc.assert(
        fc.asyncProperty(fc.record({ lag: fc.nat(3), perStep: fc.integer({ min: 1, max: 3 }), picks }), (trainer) =>
          train(place(), trainer),
        ),
        { numRuns: searches * 2 },
      );
    },
  );

const picks = fc.array(
  fc.record({ does: fc.constantFrom("claim", "finish", "finish", "release", "crash", "train", "keep", "cancel"), pick: fc.nat(9) }),
  { maxLength: 50, size: "max" },
);

type Simulated = { lag: number; perStep: number; picks: { does: string; pick: number }[] };

/** Groups of two that end in any order, on nodes that die, under a trainer that takes so many a step and names its weights after each. */
async function train(at: LedgerPlace, { lag, perStep, picks }: Simulated): Promise<void> {
  const groups = 14;
  let ledger = await at.open();
  const opened = [ledger];
  let lease = await ledger.join({ name: "n", slots: 9 });
  const { set_id: set } = await ledger.putSet("s", spec({ max_version_lag: lag, groups_per_step: perStep }));
  await ledger.submit(
    set,
    Array.from({ length: groups }, (_, key) => part(`g${key}`)),
  );
  let [step, taken, cursor] = [5, 0, null as string | null];
  const name = () => nameWeights(ledger, step);
  await name();
  /** What runs, with the step of its first call. */
  let running: { claim: Claim; step: number }[] = [];
  const does: Record<string, (pick: number) => Promise<unknown>> = {
    claim: async (pick) => {
      for (const claim of await ledger.claim(lease, 1 + pick)) running.push({ claim, step });
    },
    finish: async (pick) => {
      const [one] = running.splice(pick % Math.max(1, running.length), 1);
      if (one) await ledger.finish(one.claim, attemptResult({ oldest_step: one.step, newest_step: step }));
    },
    release: async (pick) => {
      const [one] = running.splice(pick % Math.max(1, running.length), 1);
      if (one) await ledger.release(one.claim, "sandbox_error");
    },
    crash: async () => {
      ledger = await at.open();
      opened.push(ledger);
      running = [];
      lease = await ledger.join({ name: "n", slots: 9 });
    },
    // One that was not begun is whole at once, before its turn.
    cancel: async (pick) => {
      const group = running[pick]?.claim.group_key;
      if (group !== undefined) await ledger.cancel({ set, group }, "no use");
    },
    keep: async () => cursor !== null && ledger.keep("trainer", set, { cursor, step }),
    train: async () => {
      const batch = await ledger.wholeGroups(set, cursor, Math.min(perStep, groups - taken));
      if (batch.length < perStep && taken + batch.length < groups) return;
      for (const { rows } of batch)
        for (const { oldest_step, stale } of rows)
          assert.ok(oldest_step === null || (step - oldest_step <= lag && stale !== true), `trained at ${step}, sampled at ${oldest_step}`);
      [step, taken, cursor] = [step + 1, taken + batch.length, batch.at(-1)?.cursor ?? cursor];
      await name();
    },
  };
  for (const { does: what, pick } of picks) await does[what]?.(pick);
  // The newest ends first, so each older one is overtaken by all that may overtake it.
  for (let rounds = 0; taken < groups; rounds++) {
    assert.ok(rounds < 200, `the trainer waits at step ${step} with ${taken} groups taken`);
    await does.claim?.(9);
    for (let left = rounds % 3; running.length > 0 && left >= 0; left--) await does.finish?.(running.length - 1);
    await does.train?.(0);
  }
  for (const one of opened) await one[Symbol.asyncDispose]();
}

const kinds = [
  "submit",
  "claim",
  "finish",
  "finish",
  "release",
  "beat",
  "cancel",
  "cancelSet",
  "endMore",
  "crash",
  "rejoin",
  "expire",
  "read",
  "readGroups",
] as const;
const step = fc.record({ kind: fc.constantFrom(...kinds), pick: fc.nat(3) });

/** `isAllocated`: by `allocation`. `isStopped`: by `early_stop`. `atOnce`: rollouts that end in one transaction. */
type ReplayedSet = { isAllocated: boolean; isStopped: boolean; atOnce: number };

/** Carries out the steps, then finishes what is left, and looks at all that was served on the way. */
async function replay(
  at: LedgerPlace,
  steps: { kind: (typeof kinds)[number]; pick: number }[],
  { isAllocated, isStopped, atOnce }: ReplayedSet,
): Promise<void> {
  let ledger = await at.open(atOnce);
  const opened = [ledger];
  let lease: Lease = await ledger.join({ name: "n", slots: 9 });
  const set = (await ledger.putSet("s", spec({ samples: 3, ...(isAllocated && { allocation }), ...(isStopped && { early_stop: 2 }) })))
    .set_id;
  const places = Array.from({ length: isAllocated ? allocation.most : 3 }, (_, at) => at);
  const asked = new Set<string>();
  const claims: Claim[] = [];
  const accepted = new Map<string, number>();
  const begun = new Map<string, number>();
  const cancelled = new Set<string>();
  const read = { rows: null as string | null, groups: null as string | null };
  const served: string[] = [];
  const servedGroups: string[] = [];
  const claim = async (count: number) => {
    for (const one of await ledger.claim(lease, count)) {
      assert.ok(one.attempt > (begun.get(one.rollout_id) ?? 0), "attempts of a rollout have growing numbers");
      assert.ok(!cancelled.has(one.rollout_id), "what was cancelled is not begun");
      begun.set(one.rollout_id, one.attempt);
      claims.push(one);
    }
  };
  const finish = async (one: Claim) => {
    if ((await ledger.finish(one, attemptResult({ turns: one.attempt, reward: one.group_key < "g2" ? 1 : one.index % 2 }))) === "fenced")
      return;
    assert.ok(!accepted.has(one.rollout_id), "a rollout is accepted once");
    assert.ok(!cancelled.has(one.rollout_id), "the attempt of a cancelled rollout is fenced");
    accepted.set(one.rollout_id, one.attempt);
  };
  const readRows = async (limit: number) => {
    for (const { cursor, row } of await ledger.results(set, read.rows, limit)) {
      read.rows = cursor;
      served.push(row.rollout_id);
      if (row.state === "completed") assert.equal(accepted.get(row.rollout_id), row.attempt);
    }
  };
  const readGroups = async (limit: number) => {
    for (const { cursor, group_key, rows } of await ledger.wholeGroups(set, read.groups, limit)) {
      read.groups = cursor;
      servedGroups.push(group_key);
      const indexes = rows.map(({ index }) => index);
      assert.deepEqual(indexes, isStopped ? [...new Set(indexes)].sort() : places);
    }
  };
  const does: Record<(typeof kinds)[number], (pick: number) => Promise<unknown>> = {
    submit: async (pick) => {
      const some = isAllocated || pick % 2 === 0 ? null : [pick % 3];
      for (const id of (await ledger.submit(set, [part(`g${pick % 4}`, { places: some })])).rollout_ids) asked.add(id);
    },
    claim: (pick) => claim(1 + (pick % 3)),
    finish: async (pick) => claims.length > 0 && finish(claims[pick % claims.length] as Claim),
    release: async (pick) =>
      claims.length > 0 && ledger.release(claims[pick % claims.length] as Claim, pick % 2 === 0 ? "sandbox_error" : null),
    beat: () => ledger.beat(lease, claims),
    cancel: (pick) => ledger.cancel({ set, group: `g${pick}` }, "stale").catch(() => undefined),
    cancelSet: async (pick) => {
      if (pick > 0) return;
      await ledger.cancel({ set }, "all of it");
      for (const id of asked) if (!accepted.has(id)) cancelled.add(id);
    },
    endMore: () => ledger.endMore(),
    crash: async () => {
      ledger = await at.open(atOnce);
      opened.push(ledger);
    },
    rejoin: async () => {
      lease = await ledger.join({ name: "n", slots: 9 });
    },
    expire: async (pick) => {
      await at.pass(pick * 15);
      return ledger.expire();
    },
    read: (pick) => readRows(1 + pick),
    readGroups: (pick) => readGroups(1 + (pick % 2)),
  };
  for (const { kind, pick } of steps) await does[kind](pick);
  while ((await ledger.endMore()) > 0);
  lease = await ledger.join({ name: "n", slots: 9 });
  for (const id of (
    await ledger.submit(
      set,
      Array.from({ length: 4 }, (_, key) => part(`g${key}`)),
    )
  ).rollout_ids)
    asked.add(id);
  for (let left = claims.length; ; left = claims.length) {
    await claim(5);
    if (claims.length === left) break;
    for (const one of claims.slice(left)) await finish(one);
    while ((await ledger.endMore()) > 0);
  }
  await readRows(1_000);
  await readGroups(1_000);
  assert.deepEqual(served.toSorted(), [...asked].sort(), "one row for each");
  assert.deepEqual(servedGroups.toSorted(), ["g0", "g1", "g2", "g3"]);
  const { rollouts, groups } = await ledger.set(set);
  assert.deepEqual([rollouts.held, rollouts.queued, rollouts.running], [0, 0, 0]);
  assert.deepEqual([rollouts.completed + rollouts.failed + rollouts.cancelled, groups], [asked.size, { open: 0, whole: 4 }]);
  assert.ok(rollouts.completed + rollouts.failed <= 3 * 4, "no more is made than `samples` a group");
  for (const one of opened) await one[Symbol.asyncDispose]();
}
