/** A transaction that is open for long keeps each version of each row: the ledger steps over none of them where it is asked often. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { GroupPart, PostgresLedger, SetSpec } from "../../../../service/ledger/index.ts";
import { loadPg } from "../../../../service/ledger/postgres/connection/pg-library.ts";
import { PostgresPlace, postgresFor } from "../../../fakes/machine/postgres.ts";
import { until } from "../../../fakes/machine/until.ts";
import { attemptResult } from "../../../fakes/records/attempt-result.ts";
import { need } from "../../../needs.ts";

const postgres = postgresFor();
const task = { task_id: "t", instruction: "Do it.", grader: { kind: "script", command: ["true"] } };

async function clientAt(t: TestContext, options = "") {
  const { Client } = await loadPg();
  const client = new Client({ host: (await postgres()).folder, user: "alidade", database: "postgres", options });
  await client.connect();
  t.after(() => client.end());
  return client;
}

/** Two sets of groups of one, a node, and a snapshot from before the first claim. */
async function behindSnapshot(t: TestContext, schema: string, groups: number) {
  const at = new PostgresPlace(postgres, schema);
  const ledger = await PostgresLedger.open(await at.url(), "service", { atOnce: 50 });
  t.after(() => ledger[Symbol.asyncDispose]());
  const sets: string[] = [];
  for (const key of ["a", "b"]) {
    const { set_id } = await ledger.putSet(key, SetSpec.parse({ samples: 1 }));
    sets.push(set_id);
    await ledger.submit(
      set_id,
      Array.from({ length: groups }, (_, at) => GroupPart.parse({ group_key: `g${at}`, task })),
    );
  }
  const lease = await ledger.join({ name: "n", slots: 9 });
  const snapshot = await clientAt(t);
  await snapshot.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  await snapshot.query("SELECT 1");
  return { at, ledger, lease, set: sets[0] as string };
}

test("a claim reads as many blocks behind an old snapshot, however many there were before it", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, ledger, lease } = await behindSnapshot(t, "claims", 400);
  const own = await clientAt(t, `-c search_path=${at.schema} -c plan_cache_mode=force_generic_plan -c enable_seqscan=off`);
  const blocksOnce = async (): Promise<number> => {
    await own.query("BEGIN");
    const { rows } = await own.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM claim('n', ${lease.epoch}, 1, 'any')`);
    await own.query("ROLLBACK");
    const [[{ Plan: plan }]] = rows.map((row) => row["QUERY PLAN"]) as unknown as [[{ Plan: Record<string, number> }]];
    return (plan["Shared Hit Blocks"] ?? 0) + (plan["Shared Read Blocks"] ?? 0);
  };
  // The server reads its catalog now and then.
  const blocks = async () => Math.min(await blocksOnce(), await blocksOnce(), await blocksOnce());
  const before = await blocks();
  for (let claimed = 0; claimed < 700; claimed += 10)
    for (const one of await ledger.claim(lease, 10)) await ledger.finish(one, attemptResult());
  await ledger.expire();
  const after = await blocks();
  assert.ok(after < before * 1.5, `${after} blocks behind 700 claims, ${before} before them`);
});

test("the parts of a cancel read no rollout again that an earlier part has ended", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const groups = 1_000;
  const { at, set } = await behindSnapshot(t, "cancels", groups);
  {
    // A process of the server tells its counts when it ends.
    await using own = await PostgresLedger.open(await at.url(), "service", { atOnce: 50 });
    await own.cancel({ set }, "no use");
    while ((await own.endMore()) > 0);
    assert.equal((await own.set(set)).rollouts.cancelled, groups);
  }
  const sql = "SELECT sum(idx_tup_read) AS n FROM pg_stat_user_indexes WHERE schemaname = $1 AND relname = 'rollouts'";
  const read = async () => Number((await at.ask(sql, [at.schema]))[0]?.n);
  await until(async () => (await read()) > groups);
  assert.ok((await read()) < 8 * groups, `${await read()} rollouts were read`);
});
