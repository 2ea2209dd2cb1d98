/**
 * A claim as a function of the schema. One claims at a time over all nodes, so the shares of sets are exact and no two look at
 * the same rollout. The lock is held for the server's own work alone: held by statements that come from a node, it was held for
 * their ways between two machines, and a hundred busy nodes waited for each other until their leases were over.
 *
 * Each free slot goes to the highest priority; among equals to the set that has had least for its weight. `waiting` goes from one
 * set with queued rollouts to the next, because sets that are over are many. A row that another transaction is changing is no
 * queued one by now. The first claim of a group notes the policy step that it is begun at (a group is admitted only in a set
 * with a bound), and starts the clock of a cut that waits for no result.
 *
 * What a node broke waits for another one, for a while, where there is another.
 *
 * A slot is a statement, for nodes ask for one or two: it has few steps, and its rows are found by their keys. A subquery with
 * LIMIT 1 is not joined in another order, in which all groups of the set are read.
 */
import { elsewhereSeconds } from "../ledger.ts";
import { stepInSql } from "./facts.ts";
import { now } from "./tables.ts";

export const claimFunction = `
CREATE FUNCTION claim(its_name text, its_epoch bigint, free integer, sets_from text) RETURNS TABLE (
  id text, attempt integer, set_id text, group_key text, sample_index integer, failures integer,
  number integer, size integer, task text, task_hash text, spec text
) LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
  shunned text;
BEGIN
  IF NOT EXISTS (SELECT FROM rollouts WHERE state = 'queued') THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended(current_schema()::text || '/claim', 0));
  -- Locked, so that the node cannot be taken for dead while it claims; and last, so that its beat waits for no other claim.
  PERFORM FROM nodes WHERE name = its_name AND epoch = its_epoch AND NOT is_draining FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF EXISTS (SELECT FROM nodes WHERE name <> its_name AND NOT is_draining AND until >= ${now}) THEN
    shunned := its_name;
  END IF;
  FOR slot IN 1..free LOOP
    RETURN QUERY
    WITH RECURSIVE waiting AS (
      (SELECT set_id AS id FROM rollouts WHERE state = 'queued' ORDER BY set_id LIMIT 1)
      UNION ALL
      SELECT (SELECT set_id FROM rollouts WHERE state = 'queued' AND set_id > waiting.id ORDER BY set_id LIMIT 1)
      FROM waiting WHERE id IS NOT NULL
    ), next AS MATERIALIZED (
      SELECT first.id, line.id AS set_id, spec
      FROM (
        SELECT of_set.* FROM waiting CROSS JOIN LATERAL (SELECT * FROM sets WHERE sets.id = waiting.id LIMIT 1) AS of_set
        WHERE sets_from = 'any' OR spec::json ->> 'purpose' = 'eval'
        ORDER BY priority DESC, pass, created, id
      ) AS line
      CROSS JOIN LATERAL (
        SELECT id FROM rollouts WHERE set_id = line.id AND state = 'queued'
        AND (shuns IS NULL OR shunned IS NULL OR strpos(shuns, '|' || shunned || '|') = 0 OR since < ${now} - ${elsewhereSeconds * 1000})
        ORDER BY place LIMIT 1 FOR UPDATE SKIP LOCKED
      ) AS first
      LIMIT 1
    ), charged AS (
      UPDATE sets SET pass = pass + 1 / weight FROM next WHERE sets.id = next.set_id
    ), taken AS (
      UPDATE rollouts SET state = 'running', attempt = attempt + 1, node = its_name, since = ${now} FROM next WHERE rollouts.id = next.id
      RETURNING rollouts.id, attempt, rollouts.set_id, group_key, sample_index, failures, spec
    ), begun AS (
      UPDATE groups SET cut_at = coalesce(cut_at, CASE WHEN cut_after = 0 THEN ${now} + cut_ms END),
        step = coalesce(step, CASE WHEN is_admitted THEN ${stepInSql} END)
      FROM taken WHERE groups.set_id = taken.set_id AND groups.key = taken.group_key
      AND (is_admitted AND step IS NULL OR cut_after = 0 AND cut_at IS NULL)
    )
    SELECT taken.id, attempt, set_id, group_key, sample_index, failures, number, size, task, task_hash, spec
    FROM taken CROSS JOIN LATERAL (
      SELECT number, size, task, task_hash FROM groups WHERE groups.set_id = taken.set_id AND groups.key = taken.group_key LIMIT 1
    ) AS of_group;
    EXIT WHEN NOT FOUND;
  END LOOP;
END
$function$
`;
