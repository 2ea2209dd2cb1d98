/** What only a ledger of several processes must show: late commits, lost answers, a server that dies. Beside the contract that all share. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { Allocations, allocationPolicies } from "../../../../service/ledger/allocation/index.ts";
import {
  type Claim,
  GroupPart,
  type Ledger,
  leaseSeconds,
  PostgresLedger,
  type ResultRow,
  SetSpec,
} from "../../../../service/ledger/index.ts";
import { claim } from "../../../../service/ledger/postgres/claims.ts";
import { postgresAddress } from "../../../../service/ledger/postgres/connection/address.ts";
import { loadPg } from "../../../../service/ledger/postgres/connection/pg-library.ts";
import { PostgresDatabase } from "../../../../service/ledger/postgres/connection/postgres-database.ts";
import { PostgresPlace, postgresFor } from "../../../fakes/machine/postgres.ts";
import { until } from "../../../fakes/machine/until.ts";
import { attemptResult } from "../../../fakes/records/attempt-result.ts";
import { nameWeights } from "../../../fakes/records/name-weights.ts";
import { need } from "../../../needs.ts";

const postgres = postgresFor();
let places = 0;

const task = { task_id: "t", instruction: "Do it.", grader: { kind: "script", command: ["true"] } };
const parts = (count: number) => Array.from({ length: count }, (_, at) => GroupPart.parse({ group_key: `g${at}`, task }));

async function openAt(t: TestContext, at: PostgresPlace): Promise<PostgresLedger> {
  const ledger = await PostgresLedger.open(await at.url());
  t.after(() => ledger[Symbol.asyncDispose]());
  return ledger;
}

/** A ledger with one set of groups of one, and a node. */
async function atWork(t: TestContext, groups: number) {
  const at = new PostgresPlace(postgres, `own${places++}`);
  const ledger = await openAt(t, at);
  const { set_id: set } = await ledger.putSet("s", SetSpec.parse({ samples: 1 }));
  const lease = await ledger.join({ name: "n", slots: 9 });
  await ledger.submit(set, parts(groups));
  return { at, ledger, set, lease };
}

/** A connection of the test's own. */
async function clientAt() {
  const { Client } = await loadPg();
  const client = new Client({ host: (await postgres()).folder, user: "alidade", database: "postgres" });
  await client.connect();
  return client;
}

/** The first failure is the test's, and ends the others. */
async function allUntilOneFails(works: ((signal: AbortSignal) => Promise<void>)[]): Promise<void> {
  const failed = new AbortController();
  const running = works.map((work) => work(failed.signal));
  try {
    await Promise.all(running);
  } finally {
    failed.abort();
    await Promise.allSettled(running);
  }
}

const listens = (at: PostgresPlace) => `LISTEN alidade_${at.schema}`;

const keysOf = async (ledger: Ledger, set: string, after: string | null = null) =>
  (await ledger.results(set, after, 1_000)).map(({ row }) => row.group_key);

test("a group behind a transaction that is still open does not expire yet, and the other sets do", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const at = new PostgresPlace(postgres, `own${places++}`);
  const ledger = await openAt(t, at);
  const lease = await ledger.join({ name: "n", slots: 9 });
  const spec = SetSpec.parse({ samples: 1, expire_after: { seconds: 60 } });
  const sets = await Array.fromAsync(["first", "second"], async (key) => (await ledger.putSet(key, spec)).set_id);
  const [first, second] = sets as [string, string];
  const make = async (set: string, key: string) => {
    await ledger.submit(set, [GroupPart.parse({ group_key: key, task })]);
    for (const claim of await ledger.claim(lease, 9)) await ledger.finish(claim, attemptResult());
  };
  for (const set of sets) {
    await make(set, "old");
    const [group] = await ledger.wholeGroups(set, null, 1);
    await ledger.keep("c", set, { cursor: group?.cursor as string, step: null });
  }
  await at.passLeases(61);
  assert.equal(await ledger.expireResults(null), 2);
  const slow = await clientAt();
  t.after(() => slow.end());
  await slow.query("BEGIN");
  await slow.query("SELECT pg_current_xact_id()");
  await make(first, "new");
  await at.passLeases(61);
  assert.equal(await ledger.expireResults(null), 0);
  await slow.query("COMMIT");
  const [group] = await ledger.wholeGroups(first, null, 1, "skip");
  await ledger.keep("c", first, { cursor: group?.cursor as string, step: null });
  assert.equal(await ledger.expireResults(null), 1);
  assert.deepEqual([(await ledger.set(first)).expired?.groups, (await ledger.set(second)).expired?.groups], [2, 1]);
});

test("a result behind a transaction that is still open is given when that is over, and no reader misses it", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, ledger, set, lease } = await atWork(t, 2);
  const [first, second] = (await ledger.claim(lease, 2)) as [Claim, Claim];
  // It takes its number before the others and commits after them: what a slow node's `finish` does.
  const slow = await clientAt();
  await slow.query("BEGIN");
  await slow.query("SELECT pg_current_xact_id()");
  await ledger.drain(set);
  await ledger.finish(first, attemptResult());
  await ledger.finish(second, attemptResult());
  assert.equal(await ledger.isOver(set), false, "its rollouts are over, and a reader has nothing of them yet");
  assert.deepEqual(await keysOf(ledger, set), []);
  assert.deepEqual(await ledger.wholeGroups(set, null, 9), []);
  assert.equal((await ledger.result(set, first.rollout_id))?.state, "completed", "the rollout itself is over");
  await slow.query("COMMIT");
  await slow.end();
  await until(async () => {
    const seen = ledger.version;
    if (await ledger.isOver(set)) return true;
    await ledger.changed(seen, t.signal);
    return false;
  });
  const [{ cursor } = { cursor: "" }] = await ledger.results(set, null, 1);
  assert.deepEqual(await keysOf(ledger, set, cursor), ["g1"]);
  assert.equal((await at.ask("SELECT count(*) AS n FROM results"))[0]?.n, "2");
});

test("nodes that claim and finish side by side give a reader each result once", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "postgres"))) return;
  const count = 120;
  const { at, ledger, set } = await atWork(t, count);
  const nodes = await Promise.all(["a", "b", "c"].map(async (name) => ({ name, ledger: await openAt(t, at) })));
  const made: string[] = [];
  const served: string[] = [];
  let after: string | null = null;
  await allUntilOneFails([
    async (signal) => {
      while (served.length < count) {
        const seen = ledger.version;
        const lines: Awaited<ReturnType<Ledger["results"]>> = await ledger.results(set, after, 7);
        served.push(...lines.map(({ row }) => row.rollout_id));
        after = lines.at(-1)?.cursor ?? after;
        if (lines.length === 0) await ledger.changed(seen, signal, set);
      }
    },
    ...nodes.map(({ name, ledger: own }) => async (signal: AbortSignal) => {
      const lease = await own.join({ name, slots: 5 });
      for (let claims = await own.claim(lease, 5); claims.length > 0 && !signal.aborted; claims = await own.claim(lease, 5)) {
        made.push(...claims.map(({ rollout_id }) => rollout_id));
        const ends = await Promise.all(claims.map((one) => own.finish(one, attemptResult({ reward: one.index % 2 }))));
        assert.ok(ends.every((end) => end === "accepted"));
      }
    }),
  ]);
  assert.equal(new Set(made).size, count);
  assert.equal(made.length, count, "no rollout was claimed twice");
  assert.deepEqual(served.toSorted(), made.toSorted());
  assert.deepEqual(await ledger.results(set, after, 9), []);
});

test("a change of another process wakes a reader", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, ledger, set, lease } = await atWork(t, 1);
  const other = await openAt(t, at);
  const [claim] = (await ledger.claim(lease, 1)) as [Claim];
  const finished = ledger.finish(claim, attemptResult());
  await until(async () => {
    const seen = other.version;
    if ((await keysOf(other, set)).length === 1) return true;
    await other.changed(seen, t.signal);
    return false;
  });
  assert.equal(await finished, "accepted");
});

test("an awaited result arrives also while the connection that hears of changes is cut", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, ledger, set, lease } = await atWork(t, 1);
  const [claim] = (await ledger.claim(lease, 1)) as [Claim];
  const seen = ledger.version;
  const waiting = ledger.changed(seen, t.signal);
  await until(
    async () => (await at.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = $1", [listens(at)])).length > 0,
  );
  await ledger.finish(claim, attemptResult());
  assert.ok((await waiting) > seen);
  await until(async () => (await keysOf(ledger, set)).length === 1);
});

test("a reader of one set sleeps while there is more of another one, and its set's end wakes it", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { ledger, set, lease } = await atWork(t, 1);
  const [claim] = (await ledger.claim(lease, 1)) as [Claim];
  const { set_id: other } = await ledger.putSet("other", SetSpec.parse({}));
  const seen = ledger.version;
  let woken = 0;
  const waiting = ledger.changed(seen, t.signal, other).then((version) => {
    woken = version;
  });
  await ledger.finish(claim, attemptResult());
  // One look wakes all that it finds news for.
  const news = await ledger.changed(seen, t.signal, set);
  await Promise.resolve();
  assert.equal(woken, 0);
  await ledger.drain(other);
  await waiting;
  assert.ok(woken > news);
});

test("a claim reads the groups of what it takes, and not all of its set", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, lease } = await atWork(t, 300);
  await at.ask("ANALYZE");
  const count = 20;
  const allocations = new Allocations(allocationPolicies);
  await using db = new PostgresDatabase(await loadPg(), postgresAddress(await at.url()), "service", allocations);
  // Only this view counts a single transaction. `pg_stat_user_tables` gets the counts of the submission seconds later.
  const reads = `SELECT seq_tup_read + idx_tup_fetch AS n FROM pg_stat_xact_user_tables WHERE schemaname = $1 AND relname = 'groups'`;
  const read = await db.transaction(async (own) => {
    for (let taken = 0; taken < count; taken++) assert.equal((await claim(own, lease, 1, "any")).length, 1);
    return Number((await own.get(reads, at.schema))?.n);
  });
  // A claim reads its group once to begin it, and once to return its task.
  assert.ok(read >= count && read <= 2 * count, `${read} groups were read`);
});

test("a claim waits for no submission into a set whose groups wait to be begun", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, ledger, lease } = await atWork(t, 1);
  const { set_id: held } = await ledger.putSet("held", SetSpec.parse({ samples: 1, max_version_lag: 0, groups_per_step: 1 }));
  await ledger.submit(held, parts(1));
  const other = await clientAt();
  await other.query("BEGIN");
  await other.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`${at.schema}/${held}`]);
  const named = nameWeights(ledger, 0);
  const waits = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
  const claims = ledger.claim(lease, 1);
  const either = await Promise.race([claims, named.then(() => until(async () => (await at.ask(waits)).length > 0))]);
  assert.equal(either?.length, 1, "the other set's rollout is claimed");
  await other.query("COMMIT");
  await other.end();
  await named;
  await until(async () => (await ledger.claim(lease, 1))[0]?.set_id === held);
});

test("a trainer's word that comes while groups are admitted stays", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, ledger, lease } = await atWork(t, 0);
  const { set_id: set } = await ledger.putSet("paced", SetSpec.parse({ samples: 1, max_version_lag: 0, groups_per_step: 1 }));
  await nameWeights(ledger, 0);
  await ledger.submit(set, parts(3));
  for (const claim of await ledger.claim(lease, 9)) await ledger.finish(claim, attemptResult());
  const [first] = await ledger.wholeGroups(set, null, 1);
  const other = await clientAt();
  t.after(() => other.end().catch(() => undefined));
  await other.query(`SET search_path = ${at.schema}`);
  await other.query("BEGIN");
  await other.query("SELECT FROM groups FOR UPDATE");
  const named = nameWeights(ledger, 1);
  await until(async () => (await at.ask("SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted")).length > 0);
  const kept = ledger.keep("trainer", set, { cursor: first?.cursor ?? "", step: 1 });
  const said = async () => (await at.ask(`SELECT since_step, since_groups FROM ${at.schema}.sets WHERE id = '${set}'`))[0];
  await until(async () => String(Object.values((await said()) ?? {})) === "1,1");
  await other.query("COMMIT");
  await Promise.all([named, kept]);
  assert.deepEqual(Object.values((await said()) ?? {}).map(Number), [1, 1]);
});

test("a finish that leaves its group open leaves the others of the group to be claimed meanwhile", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, ledger, lease } = await atWork(t, 0);
  const { set_id: set } = await ledger.putSet("early", SetSpec.parse({ samples: 3, early_stop: 2 }));
  await ledger.submit(set, parts(1));
  const [first] = (await ledger.claim(lease, 1)) as [Claim];
  const other = await clientAt();
  await other.query(`SET search_path = ${at.schema}`);
  await other.query("BEGIN");
  await other.query("SELECT FROM groups FOR UPDATE");
  const finished = ledger.finish(first, attemptResult());
  await until(async () => (await at.ask("SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted")).length > 0);
  assert.deepEqual(
    (await ledger.claim(lease, 1)).map(({ index }) => index),
    [1],
  );
  await other.query("COMMIT");
  await other.end();
  assert.equal(await finished, "accepted");
});

test("a finish sends no notification, and more to claim does", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, ledger, set, lease } = await atWork(t, 3);
  const claims = await ledger.claim(lease, 3);
  const heard: unknown[] = [];
  const listener = await clientAt();
  listener.on("notification", ({ payload }: { payload: string }) => heard.push(payload));
  await listener.query(listens(at));
  for (const claim of claims) await ledger.finish(claim, attemptResult());
  await ledger.submit(set, parts(4));
  // Notifications come in the order of their commits.
  await until(() => heard.length > 0);
  await listener.end();
  assert.deepEqual(heard, ["queued"]);
});

test("a node that waits for its turn to claim renews its lease meanwhile", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, ledger, lease } = await atWork(t, 1);
  const other = await clientAt();
  await other.query("BEGIN");
  await other.query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [`${at.schema}/claim`]);
  const claiming = ledger.claim(lease, 1);
  await until(async () => (await at.ask("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")).length > 0);
  assert.equal((await ledger.beat(lease, [])).isLost, false);
  await other.query("COMMIT");
  await other.end();
  assert.equal((await claiming).length, 1);
});

const sets = {
  plain: { samples: 3 },
  over_provision: { samples: 2, over_provision: 2 },
  early_stop: { samples: 3, early_stop: 1 },
  straggler_cut: { samples: 3, straggler_cut: { share: 0, seconds: 600 } },
  bounded: { samples: 2, max_version_lag: 0, groups_per_step: 1 },
  allocation: { samples: 3, allocation: { policy: "balanced", first: 2, most: 4 }, straggler_cut: { share: 0, seconds: 600 } },
};

test("nodes that claim and finish side by side keep group tools and bounds, and give each rollout one row", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "postgres"))) return;
  const at = new PostgresPlace(postgres, `own${places++}`);
  const ledger = await openAt(t, at);
  await nameWeights(ledger, 0);
  const groups = 6;
  const ids = new Map<string, string>();
  for (const [name, spec] of Object.entries(sets)) {
    const { set_id } = await ledger.putSet(name, SetSpec.parse(spec));
    ids.set(name, set_id);
    await ledger.submit(set_id, parts(groups));
    await ledger.drain(set_id);
  }
  const over = new AbortController();
  const made: string[] = [];
  const lines = new Map<string, ResultRow[]>();
  const bounded = ids.get("bounded") as string;
  const train = async (signal: AbortSignal) => {
    for (let trained = 0; trained < groups; ) {
      const seen = ledger.version;
      const whole = (await ledger.wholeGroups(bounded, null, 99)).length;
      assert.ok(whole <= trained + 1, "one group is begun at each step");
      if (whole > trained) await nameWeights(ledger, ++trained);
      else await ledger.changed(seen, signal, bounded);
    }
  };
  const readAll = async (signal: AbortSignal) => {
    for (const [name, set] of ids)
      for (let isOver = false; !isOver; ) {
        const seen = ledger.version;
        isOver = await ledger.isOver(set);
        lines.set(
          name,
          (await ledger.results(set, null, 999)).map(({ row }) => row),
        );
        if (!isOver) await ledger.changed(seen, signal, set);
      }
    over.abort();
  };
  const works = ["a", "b", "c"].map((name) => async (failed: AbortSignal) => {
    const own = await openAt(t, at);
    const lease = await own.join({ name, slots: 4 });
    const end = AbortSignal.any([over.signal, failed]);
    while (!end.aborted) {
      const seen = own.claimable.version;
      const claims = await own.claim(lease, 4);
      made.push(...claims.map(({ rollout_id, attempt }) => `${rollout_id} ${attempt}`));
      await Promise.all(claims.map((one) => own.finish(one, attemptResult({ reward: one.index % 2 }))));
      if (claims.length === 0) await own.claimable.after(seen, end).catch(() => undefined);
    }
  });
  await allUntilOneFails([train, readAll, ...works]);
  assert.equal(new Set(made).size, made.length, "no attempt was given to two nodes");
  const standing = (name: string) => (lines.get(name) ?? []).filter(({ state }) => state === "completed").length;
  const given = Object.fromEntries(
    [...lines].map(([name, rows]) => [name, [rows.length, new Set(rows.map((row) => row.rollout_id)).size]]),
  );
  const counts = { plain: 18, over_provision: 24, early_stop: 18, straggler_cut: 18, bounded: 12, allocation: 24 };
  assert.deepEqual(given, Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, [count, count]])));
  assert.deepEqual(Object.keys(sets).map(standing), [18, 12, 6, 18, 12, 18]);
  const unclocked = await at.ask("SELECT FROM groups WHERE set_id = $1 AND cut_at IS NULL", [ids.get("straggler_cut")]);
  assert.equal(unclocked.length, 0, "the first claim of a group starts its clock");
  const begun = await at.ask("SELECT step FROM groups WHERE set_id = $1 ORDER BY whole_xid", [bounded]);
  assert.deepEqual(
    begun.map(({ step: at_step }) => Number(at_step)),
    [0, 1, 2, 3, 4, 5],
  );
});

test("after the database was away no lease ends before each node could renew it once", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, ledger, lease } = await atWork(t, 1);
  const dead = await ledger.join({ name: "dead", slots: 1 });
  await at.passLeases(leaseSeconds + 1);
  await at.ask("UPDATE watch SET looked = looked - 60000");
  assert.deepEqual(await ledger.expire(), [], "the look before was a minute ago: the database was away, or all that look");
  assert.deepEqual(await ledger.expire(), []);
  assert.equal((await ledger.beat(lease, [])).isLost, false);
  await at.ask("UPDATE watch SET came_back = came_back - $1", [leaseSeconds * 1000]);
  assert.deepEqual(await ledger.expire(), ["dead"]);
  assert.equal((await ledger.beat(dead, [])).isLost, true);
});

test("while services are away the beats of living nodes say that the database is there, so a dead one is found by the first look", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, ledger, lease } = await atWork(t, 1);
  await ledger.join({ name: "dead", slots: 1 });
  for (let beats = 0; beats < 3; beats++) {
    await at.ask("UPDATE watch SET looked = looked - 10000");
    assert.equal((await ledger.beat(lease, [])).isLost, false);
  }
  await at.ask("UPDATE nodes SET until = until - $1 WHERE name = 'dead'", [(leaseSeconds + 1) * 1000]);
  assert.deepEqual(await ledger.expire(), ["dead"]);
});

test("a claim whose answer was lost on the way goes back into the line", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, ledger, lease } = await atWork(t, 2);
  const [lost, known] = (await ledger.claim(lease, 2)) as [Claim, Claim];
  assert.deepEqual((await ledger.beat(lease, [known])).stop, [], "the answer to a new claim may still be on its way");
  await at.ask("UPDATE rollouts SET since = since - $1", [(leaseSeconds + 1) * 1000]);
  await ledger.beat(lease, [known]);
  await until(async () => {
    const [again] = await ledger.claim(lease, 2);
    if (again !== undefined) assert.deepEqual([again.rollout_id, again.attempt], [lost.rollout_id, 2]);
    return again !== undefined;
  });
  assert.equal(await ledger.finish(known, attemptResult()), "accepted");
  assert.equal(await ledger.finish(lost, attemptResult()), "fenced");
});

test("a server that is killed with -9 ends no process of ours, and loses nothing that was committed", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { ledger, set, lease } = await atWork(t, 2);
  const server = await postgres();
  const [first, second] = (await ledger.claim(lease, 2)) as [Claim, Claim];
  await ledger.finish(first, attemptResult());
  await server.kill();
  // The processes of a killed server answer until they see that it is gone.
  await until(() =>
    ledger.set(set).then(
      () => false,
      ({ code }) => code === "store_error",
    ),
  );
  await assert.rejects(ledger.finish(second, attemptResult()), { code: "store_error" });
  await server.startServer();
  await until(() =>
    ledger.finish(second, attemptResult()).then(
      (end) => end === "accepted",
      () => false,
    ),
  );
  assert.deepEqual(await keysOf(ledger, set), ["g0", "g1"]);
  assert.equal((await ledger.beat(lease, [])).isLost, false);
  await ledger.submit(set, parts(3));
  // Its word of the new rollout comes over a connection that was made again.
  await until(async () => (await ledger.claim(lease, 1)).length === 1);
});

test("a ledger that was copied as text from another server is refused, for its cursors count that server's transactions", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, ledger, lease } = await atWork(t, 1);
  const [claim] = (await ledger.claim(lease, 1)) as [Claim];
  await ledger.finish(claim, attemptResult());
  await at.ask("UPDATE results SET xid = xid + 1000000000");
  await assert.rejects(openAt(t, at), /transactions of another server/);
});

test("a name that Postgres cannot keep is the caller's mistake, and nothing of it is taken", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { ledger, set } = await atWork(t, 1);
  const wrong = GroupPart.parse({ group_key: "a\0b", task });
  await assert.rejects(ledger.submit(set, [...parts(2), wrong]), { code: "request_invalid", status: 400 });
  await assert.rejects(ledger.set("set\0"), { code: "request_invalid" });
  assert.equal((await ledger.set(set)).rollouts.queued, 1);
});

test("an address that is none of Postgres is refused, and no message repeats a password", async () => {
  for (const url of ["mysql://u:secret@h/d", "not a url", "postgres://u:secret@h/d?schema=a;b", "postgres://u:secret@h/d?options=-cx%3D1"])
    assert.throws(
      () => postgresAddress(url),
      (error: Error & { param?: string }) => error.param === "ledger" && !error.message.includes("secret"),
      url,
    );
  const { schema, text } = postgresAddress("postgres://u:secret@h:1/d");
  assert.deepEqual([schema, text], ["alidade", "postgres://h:1/d"]);
  await assert.rejects(PostgresLedger.open("postgres://u:secret@127.0.0.1:1/d"), (error: Error & { code?: string }) => {
    assert.equal(error.code, "store_error");
    return /127\.0\.0\.1:1\/d does not answer/.test(error.message) && !error.message.includes("secret");
  });
});
