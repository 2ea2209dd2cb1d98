/** Sets: made, looked at, cancelled, drained. Each function runs inside a transaction. */
import { newId } from "../../schema/ids.ts";
import type { DatabaseRow } from "../database-row.ts";
import { specOf, toSetState } from "../from-rows.ts";
import type { CancelOrder, SetState } from "../ledger.ts";
import { assertSpecsFit, type SetName } from "../namespaces.ts";
import { pinnedSpec } from "../pinned-spec.ts";
import type { SetSpec } from "../records.ts";
import { refusals } from "../refusals.ts";
import { nothingMeasured } from "../result-row.ts";
import { admissionOf, countCancelled } from "./admit.ts";
import { endRollouts, whole } from "./end-rollouts.ts";
import { expiredState } from "./expire-results.ts";
import { controlOf } from "./facts.ts";
import type { Transaction } from "./postgres-database.ts";
import { setOf } from "./set-row.ts";
import { lock, now, ownXid, settledXid } from "./tables.ts";

export async function putSet(db: Transaction, { namespace, key }: SetName, spec: SetSpec): Promise<string> {
  const control = await controlOf(db);
  const found = () => db.get("SELECT id, spec FROM sets WHERE namespace = $1 AND key = $2", namespace, key);
  const before = await found();
  const text = pinnedSpec(spec, before === undefined ? null : specOf(before), control);
  const made = await db.get(
    `INSERT INTO sets (id, namespace, key, spec, priority, weight, created) VALUES ($1, $2, $3, $4, $5, $6, ${now})
     ON CONFLICT (namespace, key) DO NOTHING RETURNING id`,
    newId("set"),
    namespace,
    key,
    text,
    spec.priority,
    spec.weight,
  );
  if (made !== undefined) {
    await chargeSpec(db, namespace, text.length);
    return String(made.id);
  }
  const known = (await found()) as DatabaseRow;
  if (known.spec !== pinnedSpec(spec, specOf(known), control)) throw refusals.otherSpec(key);
  return String(known.id);
}

async function chargeSpec(db: Transaction, namespace: string, chars: number): Promise<void> {
  const kept = await db.get(
    `INSERT INTO namespaces VALUES ($1, $2)
     ON CONFLICT (name) DO UPDATE SET spec_chars = namespaces.spec_chars + excluded.spec_chars RETURNING spec_chars`,
    namespace,
    chars,
  );
  assertSpecsFit(Number(kept?.spec_chars));
}

/** One statement. null: there is none. */
export async function setNamed(db: Transaction, { namespace, key }: SetName): Promise<string | null> {
  const found = await db.get("SELECT id FROM sets WHERE namespace = $1 AND key = $2", namespace, key);
  return found === undefined ? null : String(found.id);
}

export async function stateOf(db: Transaction, id: string): Promise<SetState> {
  const set = await setOf(db, id);
  return toSetState({
    set,
    isOver: await isOver(db, id),
    admission: await admissionOf(db, set),
    results: await db.all(
      `SELECT state, sum(n) AS n FROM (
         SELECT state, count(*) AS n FROM results WHERE set_id = $1 GROUP BY state UNION ALL SELECT state, n FROM expired_results WHERE set_id = $1
       ) AS ended GROUP BY state`,
      id,
    ),
    expired: await expiredState(db, set),
    open: await db.all(
      `SELECT state, count(*) AS n, ${now} - min(since) AS age FROM rollouts WHERE set_id = $1 AND state <> 'done' GROUP BY state`,
      id,
    ),
    groups: await db.get("SELECT count(*) AS n, count(whole_xid) AS whole FROM groups WHERE set_id = $1", id),
    failures: await db.all(
      `SELECT code, sum(n) AS n FROM (
         SELECT code, count(*) AS n FROM results WHERE set_id = $1 AND code IS NOT NULL GROUP BY code
         UNION ALL SELECT code, n FROM expired_results WHERE set_id = $1 AND code <> ''
       ) AS failed GROUP BY code`,
      id,
    ),
    consumers: await db.all("SELECT name, cursor FROM consumers WHERE set_id = $1", id),
  });
}

/** Rows behind a transaction that still runs are committed, and cannot be read yet. Throws `not_found`. */
export async function isOver(db: Transaction, id: string): Promise<boolean> {
  const set = await setOf(db, id);
  if (set.is_drained !== true) return false;
  const more = await db.get(
    `SELECT 1 WHERE EXISTS (SELECT FROM rollouts WHERE set_id = $1 AND state <> 'done')
     OR EXISTS (SELECT FROM results WHERE set_id = $1 AND xid >= (SELECT ${settledXid}))
     OR EXISTS (SELECT FROM groups WHERE set_id = $1 AND whole_xid >= (SELECT ${settledXid}))`,
    id,
  );
  return more === undefined;
}

/** All where no namespace is given. */
export async function statesOf(db: Transaction, namespace: string | undefined): Promise<SetState[]> {
  const states: SetState[] = [];
  const sets = await db.all("SELECT id FROM sets WHERE namespace = coalesce($1, namespace) ORDER BY created, id", namespace ?? null);
  for (const { id } of sets) states.push(await stateOf(db, String(id)));
  return states;
}

export async function cancel(db: Transaction, what: CancelOrder, reason: string): Promise<number> {
  await lock(db, what.set);
  await assertThere(db, what);
  const open = await db.all(
    `SELECT id FROM rollouts WHERE set_id = $1 AND state <> 'done' AND ($2::text IS NULL OR group_key = $2) AND ($3::text IS NULL OR id = $3)
     ORDER BY place FOR UPDATE`,
    what.set,
    what.group ?? null,
    what.rollout ?? null,
  );
  const ids = open.map(({ id }) => String(id));
  const ended = await endRollouts(db, { ids, attempt: null, state: "cancelled", result: nothingMeasured("cancelled", reason) });
  await countCancelled(db, what.set);
  return ended;
}

/** Throws `not_found`, naming what there is not. */
export async function assertThere(db: Transaction, { set, group, rollout }: CancelOrder): Promise<void> {
  await setOf(db, set);
  if (group !== undefined && (await db.get("SELECT 1 FROM groups WHERE set_id = $1 AND key = $2", set, group)) === undefined)
    throw refusals.noGroup(set, group);
  if (rollout !== undefined && (await db.get("SELECT 1 FROM rollouts WHERE set_id = $1 AND id = $2", set, rollout)) === undefined)
    throw refusals.noRollout(set, rollout);
}

/** From now on a group wants what it has. */
export async function drain(db: Transaction, id: string): Promise<void> {
  await lock(db, id);
  await setOf(db, id);
  await db.run(`UPDATE sets SET is_drained = true, drained_xid = ${ownXid} WHERE id = $1`, id);
  await db.run("SELECT FROM groups WHERE set_id = $1 AND whole_xid IS NULL ORDER BY key FOR UPDATE", id);
  await db.run(`UPDATE groups SET wanted = submitted, ${whole("finished >= submitted")} WHERE set_id = $1 AND whole_xid IS NULL`, id);
}
