/**
 * A claim as a function of the schema. One claims at a time over all nodes, so the shares of sets are exact and no two look at
 * the same rollout. The lock is held for the server's own work alone: held by statements that come from a node, it was held for
 * their ways between two machines, and a hundred busy nodes waited for each other until their leases were over.
 *
 * Each free slot goes to the highest priority; among equals to the set that has had least for its weight (`pass`). Of a set first
 * what came back into the line, then what comes behind the last one that was claimed. A row that another transaction is changing
 * is no queued one by now; where one was left out so, `upto` stays before it. The first claim of a group notes the policy step
 * that it is begun at (a group is admitted only in a set with a bound), and starts the clock of a cut that waits for no result.
 *
 * What a node broke waits for another one, for a while, where there is another. What is to end (`endings`) is not claimed.
 *
 * A subquery with LIMIT 1 is not joined in another order, in which all groups of the set are read.
 */
import { elsewhereSeconds } from "../ledger.ts";
import { isToEnd } from "./ends/endings.ts";
import { stepInSql } from "./facts.ts";
import { newestTurn } from "./join-the-line.ts";
import { now } from "./tables.ts";

export const claimFunction = `
CREATE FUNCTION claim(its_name text, its_epoch bigint, free integer, sets_from text) RETURNS TABLE (
  id text, attempt integer, set_id text, group_key text, sample_index integer, failures integer,
  number integer, size integer, task text, task_hash text, spec text
) LANGUAGE plpgsql AS $function$
#variable_conflict use_column
DECLARE
  of_set record;
  taken record;
  is_taken boolean;
BEGIN
  IF NOT EXISTS (SELECT FROM line) THEN
    RETURN;
  END IF;
  PERFORM pg_advisory_xact_lock(hashtextextended(current_schema()::text || '/claim', 0));
  -- Locked, so that the node cannot be taken for dead while it claims; and last, so that its beat waits for no other claim.
  PERFORM FROM nodes WHERE name = its_name AND epoch = its_epoch AND NOT is_draining FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  FOR slot IN 1..free LOOP
    is_taken := false;
    FOR of_set IN
      SELECT line.set_id, weight, coalesce(newest.pass, 0) AS pass, coalesce(newest.upto, 0) AS upto
      FROM line LEFT JOIN LATERAL (${newestTurn("line.set_id")}) AS newest ON true
      WHERE (sets_from = 'any' OR is_eval)
      AND NOT EXISTS (SELECT FROM endings WHERE endings.set_id = line.set_id AND endings.group_key IS NULL)
      ORDER BY priority DESC, pass, created, set_id
    LOOP
      SELECT id, place, is_again INTO taken FROM rollouts WHERE set_id = of_set.set_id AND state = 'queued' AND is_again
        AND (shuns IS NULL OR strpos(shuns, '|' || its_name || '|') = 0 OR since < ${now} - ${elsewhereSeconds * 1000}
          OR NOT EXISTS (SELECT FROM nodes WHERE name <> its_name AND NOT is_draining AND until >= ${now}))
        AND NOT ${isToEnd} ORDER BY place LIMIT 1 FOR UPDATE SKIP LOCKED;
      is_taken := FOUND;
      EXIT WHEN is_taken;
      SELECT id, place, is_again INTO taken FROM rollouts WHERE set_id = of_set.set_id AND state = 'queued' AND NOT is_again
        AND place > of_set.upto AND NOT ${isToEnd} ORDER BY place LIMIT 1 FOR UPDATE SKIP LOCKED;
      is_taken := FOUND;
      EXIT WHEN is_taken;
    END LOOP;
    EXIT WHEN NOT is_taken;
    INSERT INTO turns (set_id, pass, upto) VALUES (of_set.set_id, of_set.pass + 1 / of_set.weight, CASE
      WHEN taken.is_again OR EXISTS (
        SELECT FROM rollouts WHERE set_id = of_set.set_id AND state = 'queued' AND NOT is_again AND place > of_set.upto AND place < taken.place
      ) THEN of_set.upto ELSE taken.place END);
    RETURN QUERY
    WITH running AS (
      UPDATE rollouts SET state = 'running', attempt = attempt + 1, node = its_name, since = ${now} WHERE id = taken.id
      RETURNING id, attempt, set_id, group_key, sample_index, failures
    ), begun AS (
      UPDATE groups SET cut_at = coalesce(cut_at, CASE WHEN cut_after = 0 THEN ${now} + cut_ms END),
        step = coalesce(step, CASE WHEN is_admitted THEN ${stepInSql} END)
      FROM running WHERE groups.set_id = running.set_id AND groups.key = running.group_key
      AND (is_admitted AND step IS NULL OR cut_after = 0 AND cut_at IS NULL)
    )
    SELECT running.id, attempt, set_id, group_key, sample_index, failures, number, size, task, task_hash, spec
    FROM running CROSS JOIN LATERAL (
      SELECT number, size, task, task_hash FROM groups WHERE groups.set_id = running.set_id AND groups.key = running.group_key LIMIT 1
    ) AS of_group CROSS JOIN LATERAL (SELECT spec FROM sets WHERE sets.id = running.set_id LIMIT 1) AS its_set;
  END LOOP;
END
$function$
`;
