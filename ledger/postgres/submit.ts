/** Groups and rollouts that a trainer asks for: a statement for all of a kind, because a data set has thousands. */
import { hashOf } from "../../schema/ids.ts";
import { specOf } from "../from-rows.ts";
import type { Submitted } from "../ledger.ts";
import type { GroupPart } from "../records.ts";
import { refusals } from "../refusals.ts";
import type { Transaction } from "./postgres-database.ts";
import { setOf } from "./sets.ts";
import { lock, now } from "./tables.ts";

type Group = { key: string; number: number; hash: string; part: GroupPart };
type AskedRollout = { id: string; key: string; place: number };

/** Inside a transaction. Submissions, cancels and drains of one set come one after another. */
export async function submit(db: Transaction, id: string, parts: readonly GroupPart[]): Promise<Submitted> {
  await lock(db, id);
  const set = await setOf(db, id);
  const { samples } = specOf(set);
  const pass = await passOfOthers(db, id);
  const { known, fresh } = await groupsOf(db, id, parts, Number(set.groups));
  const asked = parts.flatMap((part) => rolloutsOf(id, known.get(part.group_key)?.number ?? 0, part, samples));
  await addGroups(db, id, fresh, samples);
  const added = await addRollouts(db, id, asked);
  // A trainer that submits again what it had submitted before may do so at any time.
  if (added > 0 && set.is_drained === true) throw refusals.isDrained(id);
  await db.run("UPDATE sets SET groups = groups + $2, pass = greatest(pass, $3) WHERE id = $1", id, fresh.length, pass);
  return { groups: parts.length, rollouts: added, rollout_ids: asked.map((one) => one.id) };
}

/** A set that had nothing to do has no share saved up: it begins where the others are. */
async function passOfOthers(db: Transaction, id: string): Promise<number> {
  const row = await db.get(
    `SELECT min(pass) AS pass FROM sets WHERE id <> $1 AND EXISTS (SELECT FROM rollouts WHERE set_id = sets.id AND state = 'queued')
     AND NOT EXISTS (SELECT FROM rollouts WHERE set_id = $1 AND state = 'queued')`,
    id,
  );
  return Number(row?.pass ?? 0);
}

/** All groups that are named, and those that are new. Throws `request_invalid` (409) for another task under a known key. */
async function groupsOf(db: Transaction, set: string, parts: readonly GroupPart[], from: number) {
  const keys = parts.map(({ group_key }) => group_key);
  const rows = await db.all("SELECT key, number, task_hash FROM groups WHERE set_id = $1 AND key = ANY ($2)", set, keys);
  const known = new Map(rows.map(({ key, number, task_hash }) => [String(key), { number: Number(number), hash: String(task_hash) }]));
  const fresh: Group[] = [];
  for (const part of parts) {
    const key = part.group_key;
    const hash = hashOf(part.task).slice(0, 16);
    const found = known.get(key);
    if (found !== undefined && found.hash !== hash) throw refusals.otherTask(key);
    if (found !== undefined) continue;
    const group = { key, number: from + fresh.length, hash, part };
    known.set(key, group);
    fresh.push(group);
  }
  return { known, fresh };
}

function rolloutsOf(set: string, group: number, { group_key, places }: GroupPart, samples: number): AskedRollout[] {
  const beyond = places?.find((place) => place >= samples);
  if (beyond !== undefined) throw refusals.beyondGroup(group_key, samples, beyond);
  const all = places ?? Array.from({ length: samples }, (_, place) => place);
  return all.map((place) => ({ id: `${set}-${group}-${place}`, key: group_key, place }));
}

async function addGroups(db: Transaction, set: string, fresh: Group[], samples: number): Promise<void> {
  await db.run(
    `INSERT INTO groups (set_id, key, number, task, task_id, task_hash, size, wanted)
     SELECT $1::text, key, number, task, task_id, hash, $7::integer, $7::integer
     FROM unnest($2::text[], $3::integer[], $4::text[], $5::text[], $6::text[]) AS fresh (key, number, task, task_id, hash)`,
    set,
    fresh.map(({ key }) => key),
    fresh.map(({ number }) => number),
    fresh.map(({ part }) => JSON.stringify(part.task)),
    fresh.map(({ part }) => part.task.task_id),
    fresh.map(({ hash }) => hash),
    samples,
  );
}

/** Returns how many were not there yet. */
async function addRollouts(db: Transaction, set: string, asked: AskedRollout[]): Promise<number> {
  const added = await db.all(
    `INSERT INTO rollouts (id, set_id, group_key, sample_index, since)
     SELECT id, $1::text, key, place, ${now} FROM unnest($2::text[], $3::text[], $4::integer[]) AS asked (id, key, place)
     ON CONFLICT DO NOTHING RETURNING group_key`,
    set,
    asked.map(({ id }) => id),
    asked.map(({ key }) => key),
    asked.map(({ place }) => place),
  );
  await db.run(
    `UPDATE groups SET submitted = submitted + n
     FROM (SELECT key, count(*) AS n FROM unnest($2::text[]) AS added (key) GROUP BY key) AS added
     WHERE set_id = $1 AND groups.key = added.key`,
    set,
    added.map(({ group_key }) => String(group_key)),
  );
  return added.length;
}
