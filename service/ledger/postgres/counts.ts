/**
 * Counts the rollouts, results and groups of a set, by kind. Those that are over are counted once, up to a transaction before which
 * nothing changes any more (`counted_xid`), and these counts are stored. A look adds only what came after that transaction. Without
 * stored counts, each look would read the whole set.
 */
import type { DatabaseRow } from "../database-row.ts";
import type { Transaction } from "./connection/postgres-database.ts";
import { newestTurn } from "./join-the-line.ts";
import { now, settledXid } from "./tables.ts";

/** In SQL: results and whole groups, of `xid`. */
const over = (xid: (column: string) => string): string => `
  SELECT 'result' AS what, state AS name, count(*) AS n FROM results WHERE set_id = $1 AND ${xid("xid")} GROUP BY state
  UNION ALL SELECT 'failure', code, count(*) FROM results WHERE set_id = $1 AND ${xid("xid")} AND code IS NOT NULL GROUP BY code
  UNION ALL SELECT 'group', 'whole', count(*) FROM groups WHERE set_id = $1 AND ${xid("whole_xid")}`;

const countedXid = "(SELECT counted_xid FROM sets WHERE id = $1)";

/** What and name -> n. One statement, so that the numbers fit each other. `rollout`: those that are not over by their state, and `all`. */
export async function countsOf(db: Transaction, set: string): Promise<Map<string, Map<string, number>>> {
  const rows = await db.all(
    `SELECT what, name, sum(n) AS n FROM (
       SELECT what, name, n FROM counts WHERE set_id = $1 UNION ALL ${over((column) => `${column} >= ${countedXid}`)}
       UNION ALL SELECT 'rollout', state, count(*) FROM rollouts WHERE set_id = $1 AND state = 'running' GROUP BY state
       UNION ALL SELECT 'rollout', state, count(*) FROM rollouts WHERE set_id = $1 AND state IN ('held', 'later') GROUP BY state
       UNION ALL SELECT 'rollout', 'all', rollouts FROM sets WHERE id = $1
       UNION ALL SELECT 'group', 'all', groups FROM sets WHERE id = $1
     ) AS counted GROUP BY what, name`,
    set,
  );
  const counts = new Map(["rollout", "result", "failure", "group"].map((what) => [what, new Map<string, number>()]));
  for (const { what, name, n } of rows) counts.get(String(what))?.set(String(name), Number(n));
  const rollouts = counts.get("rollout") as Map<string, number>;
  const others = ["running", "held", "later"].reduce((sum, state) => sum + (rollouts.get(state) ?? 0), 0);
  const ended = [...(counts.get("result")?.values() ?? [])].reduce((sum, n) => sum + n, 0);
  return counts.set("rollout", rollouts.set("queued", (rollouts.get("all") ?? 0) - others - ended));
}

/** Milliseconds that the oldest ones of a state are in it. Queued ones came into it in the order of their places, but for those that came again. */
export function agesOf(db: Transaction, set: string): Promise<DatabaseRow | undefined> {
  const since = `SELECT since FROM rollouts WHERE set_id = $1 AND state`;
  return db.get(
    `SELECT ${now} - least(
       (${since} = 'queued' AND NOT is_again AND place > coalesce((SELECT upto FROM (${newestTurn("$1")}) AS newest), 0) ORDER BY place LIMIT 1),
       (SELECT min(since) FROM rollouts WHERE set_id = $1 AND state = 'queued' AND is_again)
     ) AS queued, ${now} - (SELECT min(since) FROM rollouts WHERE set_id = $1 AND state = 'running') AS running`,
    set,
  );
}

/** In SQL: rollouts that are not over. */
export const openInSql = `(
    (SELECT rollouts FROM sets WHERE id = $1) - coalesce((SELECT sum(n) FROM counts WHERE set_id = $1 AND what = 'result'), 0)
    - (SELECT count(*) FROM results WHERE set_id = $1 AND xid >= ${countedXid})
  )`;

/** Those with results that are not counted and do not change any more. One statement, so it also runs outside of a transaction. */
export async function setsToCount(db: Transaction): Promise<string[]> {
  const sets = await db.all(
    `SELECT id FROM sets WHERE EXISTS (SELECT FROM results WHERE set_id = sets.id AND xid >= counted_xid AND xid < (SELECT ${settledXid})) ORDER BY id`,
  );
  return sets.map(({ id }) => String(id));
}

/** In a transaction: what does not change any more is counted. */
export async function countOn(db: Transaction, set: string): Promise<void> {
  const known = await db.get("SELECT counted_xid FROM sets WHERE id = $1 FOR UPDATE", set);
  if (known === undefined) return;
  await db.run(
    `WITH settled AS MATERIALIZED (SELECT ${settledXid} AS xid), moved AS (UPDATE sets SET counted_xid = settled.xid FROM settled WHERE id = $1)
     INSERT INTO counts SELECT $1, what, name, n FROM (
       ${over((column) => `${column} >= $2 AND ${column} < (SELECT xid FROM settled)`)}
     ) AS more WHERE n > 0 ON CONFLICT (set_id, what, name) DO UPDATE SET n = counts.n + excluded.n`,
    set,
    Number(known.counted_xid),
  );
}
