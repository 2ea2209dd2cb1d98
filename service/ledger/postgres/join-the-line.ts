/** The line of sets that wait for slots. */
import type { Transaction, Value } from "./connection/postgres-database.ts";

/** What the last claim of a set came to. `set`: in SQL. Older turns are of no use. */
export function newestTurn(set: string): string {
  return `SELECT pass, upto FROM turns WHERE turns.set_id = ${set} ORDER BY number DESC LIMIT 1`;
}

/** In SQL: something of the set is queued. */
const isQueued = (set: string): string => `(
    EXISTS (SELECT FROM rollouts WHERE rollouts.set_id = ${set} AND state = 'queued' AND is_again)
    OR EXISTS (SELECT FROM rollouts WHERE rollouts.set_id = ${set} AND state = 'queued' AND NOT is_again AND place > coalesce((SELECT upto FROM (${newestTurn(set)}) AS newest), 0))
  )`;

/**
 * Puts a set into the line before rollouts of it are queued. A set that had nothing to do has no share saved up: it begins where the
 * others of its priority are. Those of a lower one may have had nothing for days. Who takes a set out of the line waits for the
 * transactions that have looked for it there, so what they queue is never in no line.
 */
export const joinFunction = `
CREATE FUNCTION join_the_line(its_id text) RETURNS void LANGUAGE plpgsql AS $function$
#variable_conflict use_column
BEGIN
  LOOP
    PERFORM FROM line WHERE set_id = its_id FOR KEY SHARE;
    EXIT WHEN FOUND;
    INSERT INTO line SELECT id, priority, weight, created, spec::json ->> 'purpose' = 'eval' FROM sets WHERE id = its_id ON CONFLICT DO NOTHING;
    EXIT WHEN FOUND;
  END LOOP;
  INSERT INTO turns (set_id, pass, upto)
  SELECT its_id, others.pass, coalesce(newest.upto, 0)
  FROM (
    SELECT min(coalesce(newest.pass, 0)) AS pass FROM line LEFT JOIN LATERAL (${newestTurn("line.set_id")}) AS newest ON true
    WHERE set_id <> its_id AND priority = (SELECT priority FROM sets WHERE id = its_id) AND ${isQueued("line.set_id")}
  ) AS others LEFT JOIN LATERAL (${newestTurn("its_id")}) AS newest ON true
  WHERE others.pass > coalesce(newest.pass, 0) AND NOT ${isQueued("its_id")};
END
$function$
`;

export async function joinTheLine(db: Transaction, id: string): Promise<void> {
  await db.run("SELECT join_the_line($1)", id);
}

/** Those of the rollouts that `where` says, in SQL. */
export async function joinTheLineOf(db: Transaction, where: string, ...values: Value[]): Promise<void> {
  await db.run(
    `SELECT join_the_line(set_id) FROM (SELECT DISTINCT set_id FROM rollouts WHERE ${where} ORDER BY set_id) AS theirs`,
    ...values,
  );
}

/** Takes those out of the line of which nothing is queued. */
export async function leaveTheLine(db: Transaction): Promise<void> {
  const dry = await db.all(`SELECT set_id FROM line WHERE NOT ${isQueued("line.set_id")} FOR UPDATE SKIP LOCKED`);
  // Asked again once they are locked: who has queued something meanwhile had looked for its set before.
  await db.run(
    `DELETE FROM line WHERE set_id = ANY ($1) AND NOT ${isQueued("line.set_id")}`,
    dry.map(({ set_id }) => String(set_id)),
  );
}

/** A set needs its newest turn alone. */
export async function trimTurns(db: Transaction): Promise<void> {
  await db.run("DELETE FROM turns WHERE number < (SELECT max(newer.number) FROM turns AS newer WHERE newer.set_id = turns.set_id)");
}
