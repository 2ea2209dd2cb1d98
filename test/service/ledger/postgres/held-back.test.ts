/** Transactions of others that are open for long are named, with what ends them. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { GroupPart, PostgresLedger, SetSpec } from "../../../../service/ledger/index.ts";
import { loadPg } from "../../../../service/ledger/postgres/connection/pg-library.ts";
import { PostgresPlace, postgresFor } from "../../../fakes/machine/postgres.ts";
import { attemptResult } from "../../../fakes/records/attempt-result.ts";
import { need } from "../../../needs.ts";

const postgres = postgresFor({ max_prepared_transactions: "2" });
const task = { task_id: "t", instruction: "Do it.", grader: { kind: "script", command: ["true"] } };

async function openWith(t: TestContext, schema: string, patience: { results: number; vacuum: number }) {
  const at = new PostgresPlace(postgres, schema);
  const ledger = await PostgresLedger.open(await at.url(), "service", { patience });
  t.after(() => ledger[Symbol.asyncDispose]());
  return { at, ledger };
}

/** A connection of another program. */
async function otherAt(t: TestContext, user = "alidade", application_name = 'psql "x\n') {
  const { Client } = await loadPg();
  const client = new Client({ host: (await postgres()).folder, user, database: "postgres", application_name });
  await client.connect();
  t.after(() => client.end());
  const [{ pid } = {}] = (await client.query("SELECT pg_backend_pid() AS pid")).rows;
  return { client, pid: Number(pid) };
}

test("a transaction that has written holds results back, and is named with its process, user, program and state", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { ledger } = await openWith(t, "writes", { results: 0, vacuum: 3_600 });
  assert.deepEqual(await ledger.heldBack(), []);
  const { client, pid } = await otherAt(t);
  await client.query("BEGIN");
  await client.query("CREATE TABLE public.of_another ()");
  const [said, more] = await ledger.heldBack();
  assert.match(
    said ?? "",
    new RegExp(
      `^results are held back by process ${pid} of Postgres \\(user "alidade", application "psql .*", idle in transaction, its transaction is open for \\d+ s\\): end it by SELECT pg_terminate_backend\\(${pid}\\), `,
    ),
  );
  assert.deepEqual([more, said?.includes("\n")], [undefined, false]);
  await client.query("ROLLBACK");
  assert.deepEqual(await ledger.heldBack(), []);
});

test("a transaction that only reads keeps old rows, and holds no result back", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { ledger } = await openWith(t, "reads", { results: 0, vacuum: 0 });
  const { client, pid } = await otherAt(t);
  await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  await client.query("SELECT 1");
  const said = (await ledger.heldBack()).filter((one) => one.includes(String(pid)));
  assert.match(said.join(), /^old rows are kept from being removed by process/);
  await client.query("COMMIT");
});

test("a transaction of a role whose age the ledger's may not see is known by results that are held back", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { at, ledger } = await openWith(t, "hidden", { results: 0, vacuum: 0 });
  const { set_id: set } = await ledger.putSet("s", SetSpec.parse({ samples: 1 }));
  await ledger.submit(set, [GroupPart.parse({ group_key: "g", task })]);
  const lease = await ledger.join({ name: "n", slots: 1 });
  await at.ask("CREATE ROLE small LOGIN");
  await at.ask("GRANT USAGE ON SCHEMA hidden TO small");
  await at.ask("GRANT ALL ON ALL TABLES IN SCHEMA hidden TO small");
  const url = (await at.url()).replace("user=alidade", "user=small");
  await using small = await PostgresLedger.open(url, "service", { patience: { results: 0, vacuum: 0 } });
  const { client, pid } = await otherAt(t);
  await client.query("BEGIN");
  await client.query("SELECT pg_current_xact_id()");
  assert.deepEqual(await small.heldBack(), [], "nothing of the ledger waits for it");
  for (const one of await ledger.claim(lease, 1)) await ledger.finish(one, attemptResult());
  await at.ask("UPDATE results SET finished = finished - 1000");
  assert.match(
    (await small.heldBack()).join(),
    new RegExp(`^results are held back by process ${pid} of Postgres \\(user "alidade", application "psql \\?x\\?"\\): end`),
  );
  await client.query("ROLLBACK");
});

test("a prepared transaction, which is in no process, is named by what ends it", async (t) => {
  if (!(await need(t, "postgres"))) return;
  const { ledger } = await openWith(t, "prepared", { results: 0, vacuum: 3_600 });
  const { client } = await otherAt(t);
  await client.query("BEGIN");
  await client.query("SELECT pg_current_xact_id()");
  await client.query("PREPARE TRANSACTION 'left'");
  const said = await ledger.heldBack();
  await client.query("ROLLBACK PREPARED 'left'");
  assert.match(said.join(), /by the prepared transaction "left" \(since \d+ s\): COMMIT PREPARED 'left'/);
});
