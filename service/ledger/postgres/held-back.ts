/**
 * What keeps results from being read, or old rows from being removed: transactions that are open for long in the same server, whichever role
 * has them. Each is named with the statement that ends it. A role sees no ages of other roles' transactions, unless it is granted
 * `pg_read_all_stats`; then results are known to be held back by their own age.
 */
import type { DatabaseRow } from "../database-row.ts";
import type { Transaction } from "./connection/postgres-database.ts";
import { now, settledXid } from "./tables.ts";

/** Seconds after which it is said. */
export type HoldPatience = { results: number; vacuum: number };

/** Our own transactions take a second. Old rows cost space, and a backup may take minutes. */
export const usualPatience: HoldPatience = { results: 30, vacuum: 600 };

/** Transactions since: for a standby or a slot, which have no age in seconds. A busy ledger has a hundred a second. */
const oldAfterTransactions = 100_000;

const seconds = (since: string): string => `extract(epoch FROM clock_timestamp() - ${since})::float8 AS seconds`;

export async function heldBack(db: Transaction, patience: HoldPatience): Promise<string[]> {
  const found = [...(await ofResults(db, patience.results)), ...(await ofVacuum(db, patience.vacuum))];
  return found.map(([what, by, cure]) => `${what} by ${by}: ${cure}`);
}

type Holdup = [what: string, by: string, cure: string];

/** A transaction that has written nothing has no number, and holds no result back. */
async function ofResults(db: Transaction, patience: number): Promise<Holdup[]> {
  const what = "results are held back";
  const [oldest] = await db.all(
    `SELECT pid, usename, application_name, state, ${seconds("xact_start")}, EXISTS (
       SELECT FROM results WHERE xid >= (SELECT ${settledXid}) AND finished < ${now} - $1::float8 * 1000
     ) AS is_felt FROM pg_locks LEFT JOIN pg_stat_activity USING (pid)
     WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND granted AND pid IS NOT NULL AND pid <> pg_backend_pid()
     ORDER BY age(transactionid) DESC LIMIT 1`,
    patience,
  );
  const isLong = oldest !== undefined && (oldest.seconds === null ? oldest.is_felt === true : Number(oldest.seconds) > patience);
  return [...(isLong ? [[what, process(oldest), end(oldest)] satisfies Holdup] : []), ...(await prepared(db, what, patience))];
}

async function ofVacuum(db: Transaction, patience: number): Promise<Holdup[]> {
  const what = "old rows are kept from being removed";
  const [oldest] = await db.all(
    `SELECT pid, usename, application_name, state, ${seconds("xact_start")}, backend_type, greatest(age(backend_xmin), age(backend_xid)) AS age
     FROM pg_stat_activity
     WHERE (datname = current_database() OR backend_type = 'walsender') AND greatest(age(backend_xmin), age(backend_xid)) IS NOT NULL
     AND pid <> pg_backend_pid() AND backend_type <> 'autovacuum worker' AND query !~* '^\\s*vacuum' ORDER BY age DESC LIMIT 1`,
  );
  const slots = await db.all(
    `SELECT slot_name, greatest(age(xmin), age(catalog_xmin)) AS age FROM pg_replication_slots WHERE greatest(age(xmin), age(catalog_xmin)) > $1
     ORDER BY age DESC LIMIT 1`,
    oldAfterTransactions,
  );
  const ofSlots = slots.map(
    ({ slot_name, age }): Holdup => [
      what,
      `the replication slot ${named(slot_name)}, which is ${age} transactions behind`,
      `let its reader go on, or SELECT pg_drop_replication_slot(${named(slot_name, "'")})`,
    ],
  );
  if (oldest === undefined) return ofSlots;
  if (oldest.backend_type === "walsender")
    return Number(oldest.age) > oldAfterTransactions
      ? [[what, `the standby ${named(oldest.application_name)}, by hot_standby_feedback`, "end its long queries"], ...ofSlots]
      : ofSlots;
  return Number(oldest.seconds) > patience ? [[what, process(oldest), end(oldest)], ...ofSlots] : ofSlots;
}

/** A prepared one holds back both, and is in no process. */
async function prepared(db: Transaction, what: string, patience: number): Promise<Holdup[]> {
  const found = await db.all(`SELECT gid, ${seconds("prepared")} FROM pg_prepared_xacts ORDER BY age(transaction) DESC LIMIT 1`);
  return found
    .filter(({ seconds: age }) => Number(age) > patience)
    .map(({ gid, seconds: age }) => [
      what,
      `the prepared transaction ${named(gid)} (since ${Math.round(Number(age))} s)`,
      `COMMIT PREPARED ${named(gid, "'")}, or ROLLBACK PREPARED it`,
    ]);
}

function process({ pid, usename, application_name, state, seconds: age }: DatabaseRow): string {
  const known = [
    ...(usename ? [`user ${named(usename)}`] : []),
    ...(application_name ? [`application ${named(application_name)}`] : []),
    ...(state ? [String(state)] : []),
    ...(age === null ? [] : [`its transaction is open for ${Math.round(Number(age))} s`]),
  ];
  return `process ${pid} of Postgres (${known.join(", ") || "of another user"})`;
}

function end({ pid }: DatabaseRow): string {
  return `end it by SELECT pg_terminate_backend(${pid}), and set idle_in_transaction_session_timeout where it comes again`;
}

/** Names are other users' words. */
function named(name: DatabaseRow[string] | undefined, quote = '"'): string {
  return `${quote}${String(name)
    .replaceAll(/[\p{C}"']/gu, "?")
    .slice(0, 63)}${quote}`;
}
