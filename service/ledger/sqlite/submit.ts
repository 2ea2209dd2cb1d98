/**
 * Groups and rollouts that a trainer asks for: a statement for all of a kind, because a data set has thousands. Inside a transaction.
 * SQLite takes what stands left of CROSS JOIN first; it would read all groups of the set.
 */
import { specOf, toKnownGroups } from "../from-rows.ts";
import { groupToolsOf, joinedLate, laterFrom, placesOf, sizeOf } from "../group-tools.ts";
import type { Submitted } from "../ledger.ts";
import type { SetSpec } from "../records.ts";
import { refusals } from "../refusals.ts";
import { type AskedGroup, type AskedRollout, type KnownGroups, type NumberedGroup, planSubmission } from "../submission.ts";
import { stopGroup } from "./conclude.ts";
import type { Database, TableRow } from "./database.ts";
import { joinTheLine } from "./join-the-line.ts";
import { setOf } from "./set-row.ts";

export function submit(db: Database, id: string, asked: readonly AskedGroup[], now: number): Submitted {
  const set = setOf(db, id);
  const spec = specOf(set);
  joinTheLine(db, id);
  const { fresh, rollouts } = planSubmission({ id, spec, count: Number(set.groups) }, asked, knownGroups(db, id, asked));
  for (const group of fresh) addGroup(db, id, group, spec);
  const added = addRollouts(db, id, rollouts, spec, now);
  const joined = countJoined(db, id, asked);
  const expired = joined.find(({ is_expired }) => is_expired === 1);
  if (expired !== undefined) throw refusals.groupExpired(String(expired.key));
  // A trainer that submits again what it had submitted before may do so at any time.
  if (added > 0 && set.is_drained === 1) throw refusals.isDrained(id);
  for (const { key, is_stopped } of joined) if (is_stopped === 1) stopGroup(db, id, String(key), joinedLate);
  db.run("UPDATE sets SET groups = groups + ? WHERE id = ?", fresh.length, id);
  return { groups: asked.length, rollouts: added, rollout_ids: rollouts.map((one) => one.id) };
}

function knownGroups(db: Database, id: string, asked: readonly AskedGroup[]): KnownGroups {
  const rows = db.all(
    "SELECT groups.key, number, task_hash FROM json_each(?) AS asked CROSS JOIN groups ON set_id = ? AND groups.key = asked.value",
    keysText(asked),
    id,
  );
  return toKnownGroups(rows);
}

const keysText = (asked: readonly AskedGroup[]): string => JSON.stringify(asked.map(({ key }) => key));

function addGroup(db: Database, id: string, { key, number, task, task_id, hash }: NumberedGroup, spec: SetSpec): void {
  const { enough, cut_after, cut_ms } = groupToolsOf(spec);
  db.run(
    `INSERT INTO groups (set_id, key, number, task, task_id, task_hash, size, places, enough, cut_after, cut_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    id,
    key,
    number,
    task,
    task_id,
    hash,
    sizeOf(spec),
    placesOf(spec),
    enough,
    cut_after,
    cut_ms,
  );
}

/** Returns how many were not there yet. */
function addRollouts(db: Database, id: string, rollouts: readonly AskedRollout[], spec: SetSpec, now: number): number {
  return db.run(
    `INSERT INTO rollouts (id, set_id, group_key, sample_index, state, since)
     SELECT asked.value ->> 0, ?1, asked.value ->> 1, asked.value ->> 2,
       CASE WHEN asked.value ->> 2 >= ?2 THEN 'later' WHEN ?3 AND is_admitted = 0 THEN 'held' ELSE 'queued' END, ?4
     FROM json_each(?5) AS asked CROSS JOIN groups ON set_id = ?1 AND groups.key = asked.value ->> 1 WHERE true
     ON CONFLICT DO NOTHING`,
    id,
    laterFrom(spec),
    Number(spec.max_version_lag !== null),
    now,
    JSON.stringify(rollouts.map(({ id: rollout, key, place }) => [rollout, key, place])),
  );
}

/** The groups that have more rollouts than before. */
function countJoined(db: Database, id: string, asked: readonly AskedGroup[]): TableRow[] {
  const count = "(SELECT count(*) FROM rollouts WHERE rollouts.set_id = groups.set_id AND group_key = groups.key)";
  return db.all(
    `UPDATE groups SET submitted = ${count} WHERE set_id = ?1 AND key IN (SELECT value FROM json_each(?2)) AND submitted < ${count}
     RETURNING key, is_stopped, whole <= (SELECT expired_whole FROM sets WHERE id = ?1) AS is_expired`,
    id,
    keysText(asked),
  );
}
