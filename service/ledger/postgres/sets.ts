/** Makes, reads, cancels and drains sets. Each function runs inside a transaction. */
import { newId } from "../../../base/schema/ids.ts";
import type { DatabaseRow } from "../database-row.ts";
import { specOf, toExpired, toSetState } from "../from-rows.ts";
import type { CancelOrder, SetState } from "../ledger.ts";
import { assertSpecsFit, type SetName } from "../namespaces.ts";
import { pinnedSpec } from "../pinned-spec.ts";
import type { SetSpec } from "../records.ts";
import { refusals } from "../refusals.ts";
import { nothingMeasured } from "../result-row.ts";
import { admissionOf, countCancelled } from "./admit.ts";
import type { Transaction } from "./connection/postgres-database.ts";
import { agesOf, countsOf, openInSql } from "./counts.ts";
import { endRollouts } from "./ends/end-rollouts.ts";
import { orderEnding, whole } from "./ends/endings.ts";
import { expiredPlaces } from "./expire-results.ts";
import { controlOf } from "./facts.ts";
import { dropAllParked, parkedCounts } from "./parked.ts";
import { setOf } from "./set-row.ts";
import { lock, now, ownXid, settledXid } from "./tables.ts";

export async function putSet(db: Transaction, { namespace, key }: SetName, spec: SetSpec): Promise<string> {
  db.allocations.assertKnown(spec.allocation);
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
  const counts = await countsOf(db, id);
  const listed = (what: string, label: string): DatabaseRow[] => [...(counts.get(what) ?? [])].map(([name, n]) => ({ [label]: name, n }));
  const ages = await agesOf(db, id);
  return toSetState({
    set,
    isOver: await isOver(db, id),
    isCancelling: (await db.get("SELECT 1 FROM endings WHERE set_id = $1 LIMIT 1", id)) !== undefined,
    admission: await admissionOf(db, set),
    results: listed("result", "state"),
    expired: toExpired(set, expiredPlaces(set)),
    open: listed("rollout", "state"),
    ages: { queued: ages?.queued ?? null, running: ages?.running ?? null },
    groups: { n: counts.get("group")?.get("all") ?? 0, whole: counts.get("group")?.get("whole") ?? 0 },
    failures: listed("failure", "code"),
    ...(await parkedCounts(db, id)),
    consumers: await db.all("SELECT name, cursor FROM consumers WHERE set_id = $1", id),
  });
}

/** Rows behind a transaction that still runs are committed, and cannot be read yet. Throws `not_found`. */
export async function isOver(db: Transaction, id: string): Promise<boolean> {
  const set = await setOf(db, id);
  if (set.is_drained !== true) return false;
  const more = await db.get(
    `SELECT 1 WHERE ${openInSql} > 0
     OR ${hasPartialGroups("$1")}
     OR EXISTS (SELECT FROM results WHERE set_id = $1 AND xid >= (SELECT ${settledXid}))
     OR EXISTS (SELECT FROM groups WHERE set_id = $1 AND whole_xid >= (SELECT ${settledXid}))`,
    id,
  );
  return more === undefined;
}

/** Sets with open rollouts are found one behind the other: those that are over may be many. */
export async function latestSets(
  db: Transaction,
  most: number,
  namespace: string | undefined,
): Promise<{ total: number; sets: SetState[] }> {
  const [where, ...values] = namespace === undefined ? ["true"] : ["namespace = $2", namespace];
  const open = await db.all(
    `WITH RECURSIVE open AS (
       (SELECT set_id AS id FROM rollouts WHERE state <> 'done' ORDER BY set_id LIMIT 1)
       UNION ALL SELECT (SELECT set_id FROM rollouts WHERE state <> 'done' AND set_id > open.id ORDER BY set_id LIMIT 1) FROM open WHERE id IS NOT NULL
     ) SELECT sets.id FROM open JOIN sets ON sets.id = open.id WHERE ${where} ORDER BY created DESC, sets.id DESC LIMIT $1`,
    most,
    ...values,
  );
  const newest = await db.all(`SELECT id FROM sets WHERE ${where} ORDER BY created DESC, id DESC LIMIT $1`, most, ...values);
  const all = await db.get(`SELECT count(*) AS n FROM sets WHERE $1::integer > 0 AND ${where}`, most, ...values);
  const ids = [...new Set([...open, ...newest].map(({ id }) => String(id)))].slice(0, most);
  const sets: SetState[] = [];
  for (const id of ids) sets.push(await stateOf(db, id));
  return { total: Number(all?.n), sets };
}

/** All where no namespace is given. */
export async function statesOf(db: Transaction, namespace: string | undefined): Promise<SetState[]> {
  const states: SetState[] = [];
  const sets = await db.all("SELECT id FROM sets WHERE namespace = coalesce($1, namespace) ORDER BY created, id", namespace ?? null);
  for (const { id } of sets) states.push(await stateOf(db, String(id)));
  return states;
}

/** Returns how many are not over. A single one ends here; those of a set or a group are ordered to end. */
export async function cancel(db: Transaction, what: CancelOrder, reason: string): Promise<number> {
  await lock(db, what.set);
  await assertThere(db, what);
  const { set, group = null, rollout } = what;
  if (group === null && rollout === undefined) await dropAllParked(db, set, "set_cancelled");
  if (rollout !== undefined) return cancelOne(db, set, rollout, reason);
  const open =
    group === null
      ? await db.get(`SELECT ${openInSql} AS n`, set)
      : await db.get("SELECT count(*) AS n FROM rollouts WHERE set_id = $1 AND group_key = $2 AND state <> 'done'", set, group);
  if (Number(open?.n) === 0) return 0;
  // A claim that is under way is over before the order stands: none of what it means begins to run behind it.
  await lock(db, "claim");
  await orderEnding(db, { set, key: group, isRest: false, reason });
  return Number(open?.n);
}

async function cancelOne(db: Transaction, set: string, id: string, reason: string): Promise<number> {
  const open = await db.get("SELECT group_key FROM rollouts WHERE set_id = $1 AND id = $2 AND state <> 'done' FOR UPDATE", set, id);
  if (open === undefined) return 0;
  const ended = await endRollouts(db, { ids: [id], attempt: null, state: "cancelled", result: nothingMeasured("cancelled", reason) });
  await countCancelled(db, set, [String(open.group_key)]);
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

/** From now on a group wants what it has (`settleSome`). */
export async function drain(db: Transaction, id: string): Promise<void> {
  await lock(db, id);
  await setOf(db, id);
  await db.run(`UPDATE sets SET is_drained = true, drained_xid = ${ownXid} WHERE id = $1`, id);
}

/** Those with groups that have fewer rollouts than they wanted. */
export async function setsToSettle(db: Transaction): Promise<string[]> {
  const sets = await db.all(`SELECT id FROM sets WHERE is_drained AND ${hasPartialGroups("sets.id")} ORDER BY id`);
  return sets.map(({ id }) => String(id));
}

const hasPartialGroups = (set: string): string =>
  `EXISTS (SELECT FROM groups WHERE groups.set_id = ${set} AND whole_xid IS NULL AND wanted > submitted)`;

/** So many groups at most of a set that is drained. Returns how many. */
export async function settleSome(db: Transaction, id: string, most: number): Promise<number> {
  const partial = await db.all(
    "SELECT key FROM groups WHERE set_id = $1 AND whole_xid IS NULL AND wanted > submitted ORDER BY key LIMIT $2 FOR UPDATE",
    id,
    most,
  );
  await db.run(
    `UPDATE groups SET wanted = submitted, ${whole("finished >= submitted")} WHERE set_id = $1 AND key = ANY ($2)`,
    id,
    partial.map(({ key }) => String(key)),
  );
  return partial.length;
}
