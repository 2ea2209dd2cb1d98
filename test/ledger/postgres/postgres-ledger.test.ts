/** What only a ledger of several processes must show: late commits, lost answers, a server that dies. Beside the contract that all share. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { type Claim, GroupPart, type Ledger, leaseSeconds, PostgresLedger, SetSpec } from "../../../ledger/index.ts";
import { postgresAddress } from "../../../ledger/postgres/address.ts";
import { loadPg } from "../../../ledger/postgres/pg-library.ts";
import { PostgresPlace, postgresFor } from "../../fakes/machine/postgres.ts";
import { until } from "../../fakes/machine/until.ts";
import { attemptResult } from "../../fakes/records/attempt-result.ts";
import { need } from "../../needs.ts";

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

const keysOf = async (ledger: Ledger, set: string, after: string | null = null) =>
  (await ledger.results(set, after, 1_000)).map(({ row }) => row.group_key);

test("a result behind a transaction that is still open is given when that is over, and no reader misses it", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, ledger, set, lease } = await atWork(t, 2);
  const [first, second] = (await ledger.claim(lease, 2)) as [Claim, Claim];
  // It takes its number before the others and commits after them: what a slow node's `finish` does.
  const { Client } = await loadPg();
  const slow = new Client({ host: (await postgres()).folder, user: "alidade", database: "postgres" });
  await slow.connect();
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

test("nodes that claim and finish side by side give a reader each result once", { timeout: 120_000 }, async (t) => {
  if (!(await need(t, "postgres"))) return;
  const count = 120;
  const { at, ledger, set } = await atWork(t, count);
  const nodes = await Promise.all(["a", "b", "c"].map(async (name) => ({ name, ledger: await openAt(t, at) })));
  const made: string[] = [];
  const works = nodes.map(async ({ name, ledger: own }) => {
    const lease = await own.join({ name, slots: 5 });
    for (;;) {
      const claims = await own.claim(lease, 5);
      if (claims.length === 0) return;
      made.push(...claims.map(({ rollout_id }) => rollout_id));
      const ends = await Promise.all(claims.map((one) => own.finish(one, attemptResult())));
      assert.ok(ends.every((end) => end === "accepted"));
    }
  });
  const served: string[] = [];
  let after: string | null = null;
  while (served.length < count) {
    const seen = ledger.version;
    const lines: Awaited<ReturnType<Ledger["results"]>> = await ledger.results(set, after, 7);
    served.push(...lines.map(({ row }) => row.rollout_id));
    after = lines.at(-1)?.cursor ?? after;
    if (lines.length === 0) await ledger.changed(seen, t.signal);
  }
  await Promise.all(works);
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

test("a server that is killed with -9 ends no process of ours, and loses nothing that was committed", { timeout: 120_000 }, async (t) => {
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
