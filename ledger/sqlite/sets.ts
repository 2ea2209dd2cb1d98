/** Sets, their groups and rollouts: asked for, looked at, cancelled, drained. Each function runs inside a transaction. */
import { canonicalJson, hashOf, newId } from "../../schema/ids.ts";
import { specOf, toSetState } from "../from-rows.ts";
import type { CancelOrder, SetState, Submitted } from "../ledger.ts";
import type { GroupPart, SetSpec } from "../records.ts";
import { refusals } from "../refusals.ts";
import { nothingMeasured } from "../result-row.ts";
import { conclude, markWhole } from "./conclude.ts";
import type { Database, TableRow } from "./database.ts";

export function putSet(db: Database, key: string, spec: SetSpec, now: number): string {
  const known = db.get("SELECT id, spec FROM sets WHERE key = ?", key);
  const text = canonicalJson(spec);
  if (known === undefined) {
    const id = newId("set");
    db.run(
      "INSERT INTO sets (id, key, spec, priority, weight, created) VALUES (?, ?, ?, ?, ?, ?)",
      id,
      key,
      text,
      spec.priority,
      spec.weight,
      now,
    );
    return id;
  }
  if (known.spec !== text) throw refusals.otherSpec(key);
  return String(known.id);
}

/** Throws `not_found`. */
export function setOf(db: Database, id: string): TableRow {
  const row = db.get("SELECT * FROM sets WHERE id = ?", id);
  if (row === undefined) throw refusals.noSet(id);
  return row;
}

export function stateOf(db: Database, id: string, now: number): SetState {
  return toSetState({
    set: setOf(db, id),
    isOver: isOver(db, id),
    results: db.all("SELECT state, count(*) AS n FROM results WHERE set_id = ? GROUP BY state", id),
    open: db.all(
      "SELECT state, count(*) AS n, ? - min(since) AS age FROM rollouts WHERE set_id = ? AND state <> 'done' GROUP BY state",
      now,
      id,
    ),
    groups: db.get("SELECT count(*) AS n, count(whole) AS whole FROM groups WHERE set_id = ?", id),
    failures: db.all("SELECT code, count(*) AS n FROM results WHERE set_id = ? AND code IS NOT NULL GROUP BY code", id),
    consumers: db.all("SELECT name, cursor FROM consumers WHERE set_id = ?", id),
  });
}

/** Throws `not_found`. */
export function isOver(db: Database, id: string): boolean {
  const isOpen = (state: "queued" | "running") =>
    db.get(`SELECT 1 FROM rollouts WHERE set_id = ? AND state = '${state}' LIMIT 1`, id) !== undefined;
  return setOf(db, id).is_drained === 1 && !isOpen("queued") && !isOpen("running");
}

export function submit(db: Database, id: string, parts: readonly GroupPart[], now: number): Submitted {
  const set = setOf(db, id);
  const { samples } = specOf(set);
  const submitted: Submitted = { groups: 0, rollouts: 0, rollout_ids: [] };
  joinTheLine(db, id);
  for (const part of parts) {
    const group = groupOf(db, id, part, samples);
    const places = part.places ?? Array.from({ length: samples }, (_, place) => place);
    let added = 0;
    for (const place of places) {
      if (place >= samples) throw refusals.beyondGroup(part.group_key, samples, place);
      const rollout = `${id}-${group}-${place}`;
      submitted.rollout_ids.push(rollout);
      added += db.run(
        "INSERT INTO rollouts (id, set_id, group_key, sample_index, since) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        rollout,
        id,
        part.group_key,
        place,
        now,
      );
    }
    // A trainer that submits again what it had submitted before may do so at any time.
    if (added > 0 && set.is_drained === 1) throw refusals.isDrained(id);
    db.run("UPDATE groups SET submitted = submitted + ? WHERE set_id = ? AND key = ?", added, id, part.group_key);
    submitted.groups += 1;
    submitted.rollouts += added;
  }
  return submitted;
}

/** A set that had nothing to do has no share saved up: it begins where the others are. */
function joinTheLine(db: Database, id: string): void {
  if (db.get("SELECT 1 FROM rollouts WHERE set_id = ? AND state = 'queued' LIMIT 1", id) !== undefined) return;
  const others = db.get(
    "SELECT min(pass) AS pass FROM sets WHERE id <> ? AND EXISTS (SELECT 1 FROM rollouts WHERE set_id = sets.id AND state = 'queued')",
    id,
  );
  db.run("UPDATE sets SET pass = max(pass, ?) WHERE id = ?", Number(others?.pass ?? 0), id);
}

/** Its number in the set. */
function groupOf(db: Database, id: string, { group_key, task }: GroupPart, size: number): number {
  const known = db.get("SELECT number, task_hash FROM groups WHERE set_id = ? AND key = ?", id, group_key);
  const hash = hashOf(task).slice(0, 16);
  if (known !== undefined) {
    if (known.task_hash !== hash) throw refusals.otherTask(group_key);
    return Number(known.number);
  }
  const number = Number(db.get("UPDATE sets SET groups = groups + 1 WHERE id = ? RETURNING groups - 1 AS number", id)?.number);
  db.run(
    "INSERT INTO groups (set_id, key, number, task, task_hash, size) VALUES (?, ?, ?, ?, ?, ?)",
    id,
    group_key,
    number,
    JSON.stringify(task),
    hash,
    size,
  );
  return number;
}

export function cancel(db: Database, what: CancelOrder, reason: string, now: number): number {
  assertThere(db, what);
  const open = db.all(
    "SELECT * FROM rollouts WHERE set_id = ? AND state <> 'done' AND group_key = coalesce(?, group_key) AND id = coalesce(?, id) ORDER BY place",
    what.set,
    what.group ?? null,
    what.rollout ?? null,
  );
  for (const rollout of open) conclude(db, rollout, "cancelled", nothingMeasured("cancelled", reason), now);
  return open.length;
}

/** Throws `not_found`, naming what there is not. */
export function assertThere(db: Database, { set, group, rollout }: CancelOrder): void {
  setOf(db, set);
  if (group !== undefined && db.get("SELECT 1 FROM groups WHERE set_id = ? AND key = ?", set, group) === undefined)
    throw refusals.noGroup(set, group);
  if (rollout !== undefined && db.get("SELECT 1 FROM rollouts WHERE set_id = ? AND id = ?", set, rollout) === undefined)
    throw refusals.noRollout(set, rollout);
}

export function drain(db: Database, id: string): void {
  setOf(db, id);
  db.run("UPDATE sets SET is_drained = 1 WHERE id = ?", id);
  for (const { key } of db.all("SELECT key FROM groups WHERE set_id = ? AND whole IS NULL ORDER BY number", id))
    markWhole(db, id, String(key));
}
