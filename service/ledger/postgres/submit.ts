/** Groups and rollouts that a trainer asks for: a statement for all of a kind, because a data set has thousands. */
import type { DatabaseRow } from "../database-row.ts";
import { specOf, toKnownGroups } from "../from-rows.ts";
import { groupToolsOf, laterFrom, placesOf, sizeOf } from "../group-tools.ts";
import type { Submitted } from "../ledger.ts";
import type { SetSpec } from "../records.ts";
import { refusals } from "../refusals.ts";
import { type AskedGroup, type AskedRollout, type KnownGroups, type NumberedGroup, planSubmission } from "../submission.ts";
import type { Transaction } from "./connection/postgres-database.ts";
import { endJoinedLate } from "./ends/stop-groups.ts";
import { expiredPlaces } from "./expire-results.ts";
import { joinTheLine } from "./join-the-line.ts";
import { setOf } from "./set-row.ts";
import { lock, now } from "./tables.ts";

/** Inside a transaction. Submissions, cancels and drains of one set come one after another. */
export async function submit(db: Transaction, id: string, asked: readonly AskedGroup[]): Promise<Submitted> {
  await lock(db, id);
  const set = await setOf(db, id);
  const spec = specOf(set);
  await joinTheLine(db, id);
  const keys = asked.map(({ key }) => key);
  const { fresh, rollouts } = planSubmission({ id, spec, count: Number(set.groups) }, asked, await knownGroups(db, id, keys));
  await addGroups(db, id, fresh, spec);
  const added = await addRollouts(db, id, rollouts, spec);
  await assertNoneExpired(db, set, added.keys);
  await endJoinedLate(db, id, keys);
  // A trainer that submits again what it had submitted before may do so at any time.
  if (added.rollouts > 0 && set.is_drained === true) throw refusals.isDrained(id);
  await db.run("UPDATE sets SET groups = groups + $2, rollouts = rollouts + $3 WHERE id = $1", id, fresh.length, added.rollouts);
  return { groups: asked.length, rollouts: added.rollouts, rollout_ids: rollouts.map((one) => one.id) };
}

async function knownGroups(db: Transaction, id: string, keys: readonly string[]): Promise<KnownGroups> {
  return toKnownGroups(await db.all("SELECT key, number, task_hash FROM groups WHERE set_id = $1 AND key = ANY ($2)", id, keys));
}

async function addGroups(db: Transaction, set: string, fresh: readonly NumberedGroup[], spec: SetSpec): Promise<void> {
  const { enough, cut_after, cut_ms } = groupToolsOf(spec);
  await db.run(
    `INSERT INTO groups (set_id, key, number, task, task_id, task_hash, size, wanted, enough, cut_after, cut_ms)
     SELECT $1::text, key, number, task, task_id, hash, $7::integer, $8::integer, $9::integer, $10::integer, $11::bigint
     FROM unnest($2::text[], $3::integer[], $4::text[], $5::text[], $6::text[]) AS fresh (key, number, task, task_id, hash)`,
    set,
    fresh.map(({ key }) => key),
    fresh.map(({ number }) => number),
    fresh.map(({ task }) => task),
    fresh.map(({ task_id }) => task_id),
    fresh.map(({ hash }) => hash),
    sizeOf(spec),
    placesOf(spec),
    enough,
    cut_after,
    cut_ms,
  );
}

/** Returns how many were not there yet, and the groups that they join. */
async function addRollouts(
  db: Transaction,
  set: string,
  asked: readonly AskedRollout[],
  spec: SetSpec,
): Promise<{ rollouts: number; keys: string[] }> {
  const added = await db.all(
    `INSERT INTO rollouts (id, set_id, group_key, sample_index, state, since)
     SELECT id, $1::text, asked.key, place,
       CASE WHEN place >= $6::integer THEN 'later' WHEN $5::boolean AND NOT is_admitted THEN 'held' ELSE 'queued' END, ${now}
     FROM unnest($2::text[], $3::text[], $4::integer[]) WITH ORDINALITY AS asked (id, key, place, at) JOIN groups ON set_id = $1 AND groups.key = asked.key
     ORDER BY at
     ON CONFLICT DO NOTHING RETURNING group_key`,
    set,
    asked.map(({ id }) => id),
    asked.map(({ key }) => key),
    asked.map(({ place }) => place),
    spec.max_version_lag !== null,
    laterFrom(spec),
  );
  await db.run(
    `UPDATE groups SET submitted = submitted + n
     FROM (SELECT key, count(*) AS n FROM unnest($2::text[]) AS added (key) GROUP BY key) AS added
     WHERE set_id = $1 AND groups.key = added.key`,
    set,
    added.map(({ group_key }) => String(group_key)),
  );
  return { rollouts: added.length, keys: [...new Set(added.map(({ group_key }) => String(group_key)))] };
}

async function assertNoneExpired(db: Transaction, set: DatabaseRow, keys: readonly string[]): Promise<void> {
  const expired = await db.get(
    "SELECT key FROM groups WHERE set_id = $1 AND key = ANY ($2) AND (whole_xid, whole_seq) <= ($3, $4)",
    String(set.id),
    keys,
    ...expiredPlaces(set).groups,
  );
  if (expired !== undefined) throw refusals.groupExpired(String(expired.key));
}
