/** What every ledger promises of results that expire. */
import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import fc from "fast-check";
import { type Blobs, FolderBlobs, getPacked, putPacked } from "../../service/blobs/index.ts";
import { sweep } from "../../service/expiry-sweep.ts";
import { type AttemptName, type Claim, GroupPart, type Ledger, SetSpec, type Superseded } from "../../service/ledger/index.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { nameWeights } from "../fakes/records/name-weights.ts";
import { type LedgerPlace, ledgerDrivers, ledgerTest, openFor } from "./ledger-drivers.ts";

const spec = (more: object = {}) => SetSpec.parse({ samples: 2, ...more });
const task = (id: string) => ({ task_id: id, instruction: "Do it.", grader: { kind: "script", command: ["true"] } });
const part = (key: string, more: object = {}) => GroupPart.parse({ group_key: key, task: task(key), ...more });
const gone = { code: "not_found", status: 410 };
const forever = new AbortController().signal;
const scratch = scratchFolder("ledger-expiry");

for (const driver of ledgerDrivers()) {
  const { name, searches, place } = driver;
  const test = ledgerTest(driver);
  const fresh = async (t: TestContext, more: object = {}) => {
    const at = place();
    const ledger = await openFor(t, at);
    const { set_id: set } = await ledger.putSet("s", spec(more));
    const lease = await ledger.join({ name: "n", slots: 9 });
    const finish = async (count: number, more: object = {}) => {
      for (const claim of await ledger.claim(lease, count)) await ledger.finish(claim, attemptResult(more));
    };
    return { at, ledger, set, lease, finish };
  };

  test("trajectories of attempts that gave no result go, and that of the one which did stays, though nothing expires", async (t) => {
    const { at, ledger, set, lease } = await fresh(t, { samples: 1, retries: 9 });
    const blobs = new FolderBlobs(join(scratch, `${name}-superseded`));
    const kept = async ({ rollout_id, attempt }: AttemptName) => putPacked(blobs, `${set}/${rollout_id}/${attempt}`, { attempt });
    const left = async (place: number) =>
      (await readdir(join(blobs.place, set, `${set}-${place}-0`)).catch(() => [])).map((one) => one.replace(/-.*/, ""));
    await ledger.submit(
      set,
      ["once", "broken", "fenced", "cancelled", "never"].map((key) => part(key)),
    );
    const [once, broken, fenced, cancelled] = (await ledger.claim(lease, 4)) as [Claim, Claim, Claim, Claim];
    await ledger.finish(once, attemptResult({ payload: await kept(once) }));
    for (const one of [broken, fenced, cancelled]) await kept(one);
    await ledger.release(broken, "sandbox_died");
    await ledger.release(fenced, null);
    await ledger.cancel({ set, group: "cancelled" }, "enough");
    await ledger.cancel({ set, group: "never" }, "enough");
    while ((await ledger.endMore()) > 0);
    const again = await ledger.claim(lease, 9);
    assert.deepEqual(again.map(({ group_key, attempt }) => [group_key, attempt]).sort(), [
      ["broken", 2],
      ["fenced", 2],
    ]);
    assert.deepEqual(
      (await ledger.superseded(9, 0)).map(({ rollout_id, key }) => [rollout_id, key]),
      [[cancelled.rollout_id, null]],
      "a rollout that is open is none of them",
    );
    for (const one of again) await ledger.finish(one, attemptResult({ payload: await kept(one) }));
    const swept = () => sweep({ ledger, blobs, byDefault: null }, forever);
    await swept();
    assert.deepEqual(await left(1), ["1", "2"], "a node that was taken for dead may still be at its trajectory");
    await at.pass(600);
    const late = await kept({ ...fenced, attempt: 1 });
    assert.equal(await ledger.finish(fenced, attemptResult({ payload: late })), "fenced");
    await at.pass(600);
    await swept();
    assert.deepEqual([await left(0), await left(1), await left(2), await left(3)], [["1"], ["2"], ["1", "2"], []]);
    const [waiting] = await ledger.superseded(9, 0);
    assert.equal(waiting?.rollout_id, fenced.rollout_id, "its fenced attempt ended later");
    await ledger.settled([{ ...(waiting as Superseded), noted: (waiting as Superseded).noted - 1 }]);
    assert.equal((await ledger.superseded(9, 0)).length, 1, "what was noted anew meanwhile stays");
    await at.pass(600);
    const down = { removeBelow: async () => Promise.reject(new Error("away")) };
    await assert.rejects(sweep({ ledger, blobs: down, byDefault: null }, forever), /away/);
    await swept();
    assert.deepEqual([await left(2), await ledger.superseded(9, 0)], [["2"], []]);
    for (const { row } of await ledger.results(set, null, 9))
      if (row.payload !== null) assert.equal(JSON.parse(await getPacked(blobs, row.payload)).attempt, row.attempt);
  });

  test("whole groups that are old and behind each consumer expire with all their rows, and the others stay", async (t) => {
    const { at, ledger, set, lease, finish } = await fresh(t, { expire_after: { seconds: 100 } });
    await ledger.submit(set, [part("late"), part("a"), part("b"), part("c")]);
    const claims = await ledger.claim(lease, 4);
    for (const claim of claims.slice(1)) await ledger.finish(claim, attemptResult());
    await finish(4, { state: "failed", reward: null, error: { code: "sandbox_died", message: "m" } });
    const rows = await ledger.results(set, null, 99);
    const groups = await ledger.wholeGroups(set, null, 99);
    assert.deepEqual(
      groups.map(({ group_key }) => group_key),
      ["a", "b", "c"],
    );
    await at.pass(101);
    assert.equal(await ledger.expireResults(null), 0, "no consumer has kept a cursor");
    await ledger.keep("one", set, { cursor: groups[1]?.cursor as string, step: null });
    await ledger.keep("other", set, { cursor: rows[3]?.cursor as string, step: null });
    assert.equal(await ledger.expireResults(null), 1, "of b one row is before a consumer");
    const before = await ledger.set(set);
    await ledger.keep("other", set, { cursor: rows[4]?.cursor as string, step: null });
    assert.equal(await ledger.expireResults(null), 1);
    assert.equal(await ledger.expireResults(null), 0, "c is before a consumer");
    await ledger.keep("gone", set, { cursor: rows[4]?.cursor as string, step: null });
    assert.deepEqual([await ledger.forget("gone", set), await ledger.forget("gone", set)], [true, false]);
    await assert.rejects(ledger.forget("one", "none"), { code: "not_found", param: "set" });
    assert.deepEqual(Object.keys((await ledger.set(set)).consumers).sort(), ["one", "other"]);

    const state = await ledger.set(set);
    assert.deepEqual([state.rollouts, state.groups, state.failures], [before.rollouts, before.groups, before.failures]);
    assert.deepEqual([state.rollouts.completed, state.rollouts.failed, state.failures], [3, 4, { sandbox_died: 4 }]);
    const cursors = { rows: rows[4]?.cursor, groups: groups[1]?.cursor };
    assert.deepEqual(state.expired, { groups: 2, rollouts: 4, cursors });
    assert.deepEqual(
      (await ledger.removals(99)).map(({ rollout_id }) => rollout_id),
      [`${set}-1-0`, `${set}-1-1`, `${set}-2-0`, `${set}-2-1`],
    );

    for (const after of [null, rows[3]?.cursor as string])
      await assert.rejects(ledger.results(set, after, 9), {
        ...gone,
        param: "after",
        message: new RegExp(`up to the cursor ${cursors.rows} `),
      });
    await assert.rejects(ledger.wholeGroups(set, null, 9), { ...gone, message: new RegExp(`up to the cursor ${cursors.groups} `) });
    await assert.rejects(ledger.keep("third", set, { cursor: groups[0]?.cursor as string, step: null }), gone);
    await assert.rejects(ledger.result(set, `${set}-1-0`), { ...gone, param: "rollout" });
    assert.equal(await ledger.result(set, `${set}-0-0`), null);
    const keysOf = (all: { row: { group_key: string } }[]) => all.map(({ row }) => row.group_key);
    assert.deepEqual(keysOf(await ledger.results(set, cursors.rows as string, 9)), ["c", "c"]);
    assert.deepEqual(keysOf(await ledger.results(set, null, 9, "skip")), ["late", "c", "c"]);
    for (const [after, gaps] of [[cursors.groups as string], [null, "skip"]] as const)
      assert.deepEqual(
        (await ledger.wholeGroups(set, after, 9, gaps)).map(({ group_key, rows }) => [group_key, rows.length]),
        [["c", 2]],
      );

    assert.equal((await ledger.submit(set, [part("a")])).rollouts, 0, "what was submitted is known");
    await assert.rejects(ledger.submit(set, [part("a", { task: task("other") })]), { status: 409 });
    await ledger.finish(claims[0] as Claim, attemptResult());
    await ledger.drain(set);
    assert.equal((await ledger.set(set)).is_over, true);
  });

  test("without a consumer results expire only where the set says so, and never where it says that", async (t) => {
    const at = place();
    const ledger = await openFor(t, at);
    const lease = await ledger.join({ name: "n", slots: 9 });
    const specs = { silent: {}, never: { expire_after: null }, unread: { expire_after: { seconds: 100, unread: true } } };
    const ids: Record<string, string> = {};
    for (const [key, more] of Object.entries(specs)) {
      const { set_id } = await ledger.putSet(key, spec(more));
      ids[key] = set_id;
      await ledger.submit(set_id, [part("a")]);
    }
    for (const claim of await ledger.claim(lease, 9)) await ledger.finish(claim, attemptResult());
    for (const key of ["silent", "never"]) {
      const [group] = await ledger.wholeGroups(ids[key] as string, null, 1);
      if (key === "never") await ledger.keep("c", ids[key] as string, { cursor: group?.cursor as string, step: null });
    }
    await at.pass(99);
    assert.equal(await ledger.expireResults(60), 0);
    await at.pass(2);
    assert.equal(await ledger.expireResults(60), 1);
    const expired = async (key: string) => (await ledger.set(ids[key] as string)).expired?.groups ?? 0;
    assert.deepEqual([await expired("silent"), await expired("never"), await expired("unread")], [0, 0, 1]);
    const [group] = await ledger.wholeGroups(ids.silent as string, null, 1);
    await ledger.keep("c", ids.silent as string, { cursor: group?.cursor as string, step: null });
    assert.equal(await ledger.expireResults(null), 0);
    assert.equal(await ledger.expireResults(60), 1, "by the word of the service");
  });

  test("a group that is expired takes no more rollouts, and those that it had are known", async (t) => {
    const { at, ledger, set, finish } = await fresh(t, { expire_after: { seconds: 60, unread: true }, early_stop: 1 });
    await ledger.submit(set, [part("a", { places: [0] })]);
    await finish(1);
    await at.pass(61);
    assert.equal(await ledger.expireResults(null), 1);
    await assert.rejects(ledger.submit(set, [part("a")]), { status: 409, message: /is expired and takes no more rollouts/ });
    assert.equal((await ledger.submit(set, [part("a", { places: [0] })])).rollouts, 0);
  });

  test("a trainer's pace counts results that are expired", async (t) => {
    const { at, ledger, set, finish } = await fresh(t, {
      expire_after: { seconds: 60 },
      samples: 1,
      max_version_lag: 0,
      groups_per_step: 1,
    });
    await nameWeights(ledger, 0);
    await ledger.submit(set, [part("a"), part("b"), part("c")]);
    await finish(9);
    const [first] = await ledger.results(set, null, 9);
    await ledger.keep("c", set, { cursor: first?.cursor as string, step: null });
    await at.pass(61);
    assert.equal(await ledger.expireResults(null), 1);
    await nameWeights(ledger, 1);
    await finish(9);
    const [second] = await ledger.results(set, first?.cursor as string, 9);
    assert.equal(second?.row.group_key, "b");
    await ledger.keep("c", set, { cursor: second?.cursor as string, step: 1 });
    assert.equal((await ledger.set(set)).admission?.groups_allowed, 3);
  });

  test(
    "whatever expires, is swept and dies in whatever order, a consumer that goes on from its kept cursor misses and doubles no row",
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 70, size: "max" }), fc.boolean(), (steps, unread) =>
          replay(place(), steps, unread),
        ),
        { numRuns: searches * 2 },
      );
    },
    { timeout: 240_000 },
  );
}

const kinds = ["submit", "finish", "finish", "cancel", "read", "read", "keep", "keep", "rewind", "sweep", "sweep", "die", "crash"] as const;
const step = fc.record({ kind: fc.constantFrom(...kinds), pick: fc.nat(5) });

/** `read`: ids in their order, in memory; `safe`: the checkpoint. */
type Consumer = { name: string; isWhole: boolean; isKept: boolean; isShutOut: boolean; now: Checkpoint; safe: Checkpoint };
type Checkpoint = { cursor: string | null; read: readonly string[] };

/** Trajectories by the names of their rollouts. `dying`: the process ends with the next removal but one. */
class MemoryBlobs implements Blobs {
  readonly place = "memory";
  readonly names = new Set<string>();
  dying = Number.POSITIVE_INFINITY;

  async put(key: string): Promise<void> {
    this.names.add(key);
  }

  async get(): Promise<null> {
    return null;
  }

  async removeLogs(): Promise<void> {}

  async removeBelow(name: string): Promise<void> {
    this.dying -= 1;
    if (this.dying < 0) throw new Error("killed");
    this.names.delete(name);
  }
}

async function replay(at: LedgerPlace, steps: { kind: (typeof kinds)[number]; pick: number }[], unread: boolean): Promise<void> {
  let ledger = await at.open();
  const opened: Ledger[] = [ledger];
  const blobs = new MemoryBlobs();
  const set = (await ledger.putSet("s", spec({ expire_after: { seconds: 60, unread } }))).set_id;
  let lease = await ledger.join({ name: "n", slots: 9 });
  const asked = new Set<string>();
  const begin: Checkpoint = { cursor: null, read: [] };
  const consumers = [true, false, true].map(
    (isWhole, index): Consumer => ({ name: `c${index}`, isWhole, isKept: false, isShutOut: false, now: begin, safe: begin }),
  );
  const read = async (consumer: Consumer, limit: number): Promise<number> => {
    if (consumer.isShutOut) return 0;
    const { cursor } = consumer.now;
    const page = consumer.isWhole
      ? (await lines(consumer, ledger.wholeGroups(set, cursor, limit))).map((one) => ({ cursor: one.cursor, ids: one.rows }))
      : (await lines(consumer, ledger.results(set, cursor, limit))).map((one) => ({ cursor: one.cursor, ids: [one.row] }));
    for (const { cursor, ids } of page) {
      for (const { rollout_id, state } of ids)
        if (state === "completed") assert.ok(blobs.names.has(`${set}/${rollout_id}`), "what is served has its trajectory");
      consumer.now = { cursor, read: [...consumer.now.read, ...ids.map(({ rollout_id }) => rollout_id)] };
    }
    return page.length;
  };
  /** Only one that has kept nothing, or had gone on from nothing, may be told that rows are gone. */
  const lines = async <T>(consumer: Consumer, page: Promise<T[]>): Promise<T[]> => {
    try {
      return await page;
    } catch (error) {
      assert.equal((error as { status?: number }).status, 410);
      assert.ok(!consumer.isKept, "rows behind a kept cursor stay");
      consumer.isShutOut = true;
      return [];
    }
  };
  const keep = async (consumer: Consumer): Promise<void> => {
    const { cursor } = consumer.now;
    if (consumer.isShutOut || cursor === null) return;
    await lines(
      consumer,
      ledger.keep(consumer.name, set, { cursor, step: null }).then(() => []),
    );
    if (consumer.isShutOut) return;
    [consumer.safe, consumer.isKept] = [consumer.now, true];
  };
  const open = async () => {
    ledger = await at.open();
    opened.push(ledger);
    lease = await ledger.join({ name: "n", slots: 9 });
  };
  const finish = async (count: number) => {
    for (const claim of await ledger.claim(lease, count)) {
      await blobs.put(`${set}/${claim.rollout_id}`);
      await ledger.finish(claim, attemptResult());
    }
  };
  const one = (pick: number) => consumers[pick % consumers.length] as Consumer;
  const swept = () => sweep({ ledger, blobs, byDefault: null }, forever);
  const does: Record<(typeof kinds)[number], (pick: number) => Promise<unknown>> = {
    submit: async (pick) => {
      const part_ = part(`g${pick}`, { places: pick % 2 === 0 ? null : [pick % 2] });
      const { rollout_ids } = await ledger.submit(set, [part_]);
      for (const id of rollout_ids) asked.add(id);
    },
    finish: (pick) => finish(1 + pick),
    cancel: (pick) => ledger.cancel({ set, group: `g${pick}` }, "stale").catch(() => undefined),
    read: (pick) => read(one(pick), 1 + pick),
    keep: (pick) => keep(one(pick)),
    rewind: async (pick) => {
      one(pick).now = one(pick).safe;
    },
    sweep: async (pick) => {
      await at.pass(pick * 30);
      await swept();
    },
    die: async (pick) => {
      await at.pass(61);
      blobs.dying = pick;
      await swept().catch(() => undefined);
      blobs.dying = Number.POSITIVE_INFINITY;
      await open();
    },
    crash: open,
  };
  for (const { kind, pick } of steps) await does[kind](pick);
  for (const consumer of consumers) consumer.now = consumer.safe;
  await ledger.drain(set);
  while ((await ledger.set(set)).rollouts.queued > 0) await finish(9);
  for (const consumer of consumers) {
    while ((await read(consumer, 3)) > 0);
    if (consumer.isShutOut) continue;
    assert.deepEqual(consumer.now.read.toSorted(), [...asked].toSorted(), `${consumer.name} has each row once`);
    await keep(consumer);
  }
  await at.pass(61);
  await swept();
  const { expired, rollouts, is_over } = await ledger.set(set);
  const isAll = unread || consumers.some(({ isKept }) => isKept);
  assert.deepEqual([expired?.rollouts ?? 0, is_over], [isAll ? asked.size : 0, true]);
  assert.equal(rollouts.completed + rollouts.failed + rollouts.cancelled, asked.size);
  if (isAll) assert.deepEqual([await ledger.removals(9), [...blobs.names]], [[], []]);
  for (const each of opened) await each[Symbol.asyncDispose]();
}
