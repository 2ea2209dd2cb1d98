import { AlidadeError, messageOf } from "../../../base/errors.ts";
import { newId } from "../../../base/schema/ids.ts";
import { type Layout, stepsToNow } from "../layout.ts";
import { claimFunction } from "./claim-function.ts";
import type { PostgresAddress } from "./connection/address.ts";
import type { Transaction } from "./connection/postgres-database.ts";
import { fact } from "./facts.ts";
import { joinFunction } from "./join-the-line.ts";
import { nextXid, layout as ownLayout, tables } from "./tables.ts";

/**
 * Makes the tables where there are none, turns those of the layout before into today's, and returns the ledger's id. Throws
 * `store_error` for tables of any other layout, and for rows copied from another server.
 */
export async function prepare(db: Transaction, { schema, text }: PostgresAddress, layout: Layout = ownLayout): Promise<string> {
  const refuse = (why: string) => new AlidadeError("store_error", `${text}, schema ${schema}: ${why}`);
  await db.run("SELECT pg_advisory_xact_lock(hashtextextended('alidade/' || $1::text, 0))", schema);
  // A role that may not make a schema may use one that is there.
  const there = await db.get("SELECT to_regclass($1) IS NOT NULL AS is_there", `${schema}.facts`);
  if (there?.is_there !== true) await makeTables(db, schema);
  const found = await fact(db, "layout", String(layout.now));
  for (const step of stepsOrRefusal(found, layout, refuse)) await db.run(step);
  await db.run("UPDATE facts SET value = $1 WHERE name = 'layout' AND value <> $1", String(layout.now));
  const last = await db.get(
    `SELECT greatest((SELECT max(xid) FROM results), (SELECT max(expired_xid) FROM sets)) >= ${nextXid} AS is_ahead`,
  );
  if (last?.is_ahead === true)
    throw refuse(
      "its results count the transactions of another server, from which it was copied as text: new ones would come before the cursors of trainers. Copy the whole cluster (pg_basebackup), or name another schema",
    );
  return fact(db, "id", newId("run").slice(0, 11));
}

function stepsOrRefusal(found: string, layout: Layout, refuse: (why: string) => AlidadeError): readonly string[] {
  try {
    return stepsToNow(found, layout, "schema");
  } catch (error) {
    throw refuse(messageOf(error));
  }
}

async function makeTables(db: Transaction, schema: string): Promise<void> {
  await db.run(`CREATE SCHEMA IF NOT EXISTS ${schema}`);
  for (const statement of tables.split(";")) if (statement.trim() !== "") await db.run(statement);
  await db.run(joinFunction);
  await db.run(claimFunction);
}
