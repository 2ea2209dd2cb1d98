/** Parked rollouts (`straggler_cut` with `rest: park`). Each function runs inside a transaction, unless it says otherwise. */
import type { ParkedReason } from "../../../base/schema/reasons/parked.ts";
import type { DatabaseRow } from "../database-row.ts";
import { specOf, toParked } from "../from-rows.ts";
import { cutByClock, parks } from "../group-tools.ts";
import type { AttemptName, Claim, ParkedEnd } from "../ledger.ts";
import { dropsOf, parkBounds } from "../parking.ts";
import type { SetSpec } from "../records.ts";
import type { Transaction } from "./connection/postgres-database.ts";
import { stepOf } from "./facts.ts";
import { setOf } from "./set-row.ts";
import { now } from "./tables.ts";

/** Parks those of these rollouts that a later group may go on from, and returns their ids. The caller has locked all of them, and ends them. */
export async function park(
  db: Transaction,
  { spec, reason }: { spec: SetSpec; reason: string },
  ids: readonly string[],
): Promise<Set<string>> {
  if (!parks(spec) || reason !== cutByClock) return new Set();
  const parked = await db.all(
    `INSERT INTO parked (rollout_id, set_id, task_hash, group_id, sample_index, attempt, step, since, node)
     SELECT rollouts.id, rollouts.set_id, groups.task_hash, rollouts.set_id || '-' || number, rollouts.sample_index, rollouts.attempt,
       least(groups.step, before.step), ${now}, rollouts.node
     FROM rollouts JOIN groups ON groups.set_id = rollouts.set_id AND groups.key = group_key LEFT JOIN parked AS before ON before.taken_by = rollouts.id
     WHERE rollouts.id = ANY ($1) AND (rollouts.state = 'running' OR rollouts.state = 'queued' AND rollouts.attempt > 0 AND failures = 0)
     AND NOT ${isCancelled} RETURNING rollout_id`,
    ids,
    cutByClock,
  );
  return new Set(parked.map(({ rollout_id }) => String(rollout_id)));
}

/** In SQL: the rollout is to end by another order than the clock's, `$2`. */
const isCancelled = `EXISTS (
      SELECT FROM endings WHERE endings.set_id = rollouts.set_id AND rollouts.place <= upto
      AND (endings.group_key IS NULL OR endings.group_key = rollouts.group_key AND NOT is_rest AND endings.reason <> $2)
    )`;

/** What a rollout took up while it was at nothing yet waits again; what broke goes on in no other. */
export async function letGo(db: Transaction, { rollout_id, attempt }: AttemptName, end: ParkedEnd): Promise<boolean> {
  const own = "rollout_id = $1 AND attempt = $2 AND node IS NOT NULL";
  if (end === "goes_on") return (await db.run(`UPDATE parked SET node = NULL WHERE ${own}`, rollout_id, attempt)) > 0;
  const [row] = await db.all(`DELETE FROM parked WHERE ${own} RETURNING set_id`, rollout_id, attempt);
  if (row === undefined) return false;
  if (end === "nothing_sampled") await db.run("UPDATE parked SET taken_by = NULL WHERE taken_by = $1", rollout_id);
  else await db.run("DELETE FROM parked WHERE taken_by = $1", rollout_id);
  await count(db, String(row.set_id), end, 1);
  return false;
}

/** The node is gone, or has begun anew: what was to end on it has ended. */
export async function freeParked(db: Transaction, node: string): Promise<void> {
  await db.run("UPDATE parked SET node = NULL WHERE node = $1", node);
}

/**
 * The first attempt of a rollout takes up the one that waits longest; each later one goes on from the same. One statement, so it also
 * runs outside of a transaction.
 */
export async function takeUp(db: Transaction, claim: Claim): Promise<Claim> {
  const { spec, set_id, rollout_id, attempt, task_hash } = claim;
  if (!parks(spec)) return claim;
  const at = await db.get(`SELECT ${now} AS now`);
  const bounds = parkBounds(spec, { now: Number(at?.now), step: await stepOf(db) });
  const [row] = await db.all(
    `WITH known AS (SELECT * FROM parked WHERE taken_by = $1), taken AS (
       UPDATE parked SET taken_by = $1 WHERE $2::integer = 1 AND NOT EXISTS (SELECT FROM known) AND rollout_id = (
         SELECT rollout_id FROM parked WHERE set_id = $3 AND task_hash = $4 AND node IS NULL AND taken_by IS NULL AND since >= $5::bigint
         AND (step IS NULL OR step >= $6::bigint) ORDER BY since, rollout_id LIMIT 1 FOR UPDATE SKIP LOCKED
       ) RETURNING *
     ), counted AS (
       INSERT INTO unparked SELECT set_id, 'taken_up', 1 FROM taken ON CONFLICT (set_id, reason) DO UPDATE SET n = unparked.n + 1
     ) SELECT * FROM known UNION ALL SELECT * FROM taken`,
    rollout_id,
    attempt,
    set_id,
    task_hash,
    bounds.since,
    bounds.step,
  );
  return row === undefined ? claim : { ...claim, parked: toParked(row) };
}

/** Forgets those whose later rollout is over, and drops those that may go on in no later group. `isOver`: of a set. */
export async function dropParked(db: Transaction, isOver: (set: string) => Promise<boolean>): Promise<void> {
  const lost = await db.all(
    `WITH over AS (
       DELETE FROM parked USING rollouts WHERE rollouts.id = parked.taken_by AND rollouts.state = 'done'
       AND NOT EXISTS (SELECT FROM parked AS next WHERE next.rollout_id = parked.taken_by AND next.node IS NOT NULL)
       RETURNING parked.set_id, parked.taken_by
     ) SELECT over.set_id, count(*) AS n FROM over JOIN results ON results.rollout_id = taken_by
     WHERE results.state <> 'completed' AND entry::jsonb ->> 'mask_reason' IS DISTINCT FROM 'parked' GROUP BY over.set_id`,
  );
  for (const { set_id, n } of lost) await count(db, String(set_id), "taker_ended", Number(n));
  for (const { set_id } of await db.all("SELECT DISTINCT set_id FROM parked WHERE taken_by IS NULL")) {
    const set = String(set_id);
    const spec = specOf(await setOf(db, set));
    const at = await db.get(`SELECT ${now} AS now`);
    const setNow = { now: Number(at?.now), step: await stepOf(db), isOver: await isOver(set) };
    for (const { rollout_id, reason } of dropsOf(spec, await waitingOf(db, set), setNow))
      await count(db, set, reason, await db.run("DELETE FROM parked WHERE rollout_id = $1 AND taken_by IS NULL", rollout_id));
  }
}

/** The set is cancelled. */
export async function dropAllParked(db: Transaction, set: string, reason: ParkedReason): Promise<void> {
  await count(db, set, reason, await db.run("DELETE FROM parked WHERE set_id = $1 AND taken_by IS NULL", set));
}

function waitingOf(db: Transaction, set: string): Promise<DatabaseRow[]> {
  return db.all("SELECT * FROM parked WHERE set_id = $1 AND taken_by IS NULL ORDER BY since DESC, rollout_id DESC", set);
}

async function count(db: Transaction, set: string, reason: ParkedReason, n: number): Promise<void> {
  if (n > 0)
    await db.run(
      "INSERT INTO unparked VALUES ($1, $2, $3) ON CONFLICT (set_id, reason) DO UPDATE SET n = unparked.n + excluded.n",
      set,
      reason,
      n,
    );
}

export async function parkedCounts(db: Transaction, set: string): Promise<{ parked: DatabaseRow[]; unparked: DatabaseRow[] }> {
  const parked = await db.all(
    `SELECT CASE WHEN node IS NULL THEN 'waiting' ELSE 'leaving' END AS state, count(*) AS n FROM parked
     WHERE set_id = $1 AND taken_by IS NULL GROUP BY node IS NULL`,
    set,
  );
  return { parked, unparked: await db.all("SELECT reason, n FROM unparked WHERE set_id = $1", set) };
}
