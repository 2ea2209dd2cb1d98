/** Sets: made, looked at, cancelled, drained. Each function runs inside a transaction. */
import { newId } from "../../../base/schema/ids.ts";
import { specOf, toExpired, toSetState } from "../from-rows.ts";
import type { CancelOrder, SetState } from "../ledger.ts";
import { assertSpecsFit, type SetName } from "../namespaces.ts";
import { pinnedSpec } from "../pinned-spec.ts";
import type { SetSpec } from "../records.ts";
import { refusals } from "../refusals.ts";
import { nothingMeasured } from "../result-row.ts";
import { admissionOf, countCancelled } from "./admit.ts";
import { conclude } from "./conclude.ts";
import type { Database, TableRow } from "./database.ts";
import { orderEnding } from "./endings.ts";
import { expiredPlaces } from "./expire-results.ts";
import { controlOf } from "./facts.ts";
import { dropAllParked, parkedCounts } from "./parked.ts";
import { setOf } from "./set-row.ts";
import { isUnsettled } from "./whole-groups.ts";

export function putSet(db: Database, { namespace, key }: SetName, spec: SetSpec, now: number): string {
  db.allocations.assertKnown(spec.allocation);
  const known = db.get("SELECT id, spec FROM sets WHERE namespace = ? AND key = ?", namespace, key);
  const text = pinnedSpec(spec, known === undefined ? null : specOf(known), controlOf(db));
  if (known === undefined) {
    const id = newId("set");
    const kept = db.get(
      "INSERT INTO namespaces VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET spec_chars = spec_chars + excluded.spec_chars RETURNING spec_chars",
      namespace,
      text.length,
    );
    assertSpecsFit(Number(kept?.spec_chars));
    db.run(
      "INSERT INTO sets (id, namespace, key, spec, priority, weight, created) VALUES (?, ?, ?, ?, ?, ?, ?)",
      id,
      namespace,
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

/** null: there is none. */
export function setNamed(db: Database, { namespace, key }: SetName): string | null {
  const found = db.get("SELECT id FROM sets WHERE namespace = ? AND key = ?", namespace, key);
  return found === undefined ? null : String(found.id);
}

/** All where no namespace is given. */
export function setsOf(db: Database, namespace: string | undefined): string[] {
  const all = db.all("SELECT id FROM sets WHERE namespace = coalesce(?, namespace) ORDER BY created, id", namespace ?? null);
  return all.map(({ id }) => String(id));
}

/** Sets with open rollouts are found one behind the other: those that are over may be many. */
export function latestSets(db: Database, most: number, namespace: string | undefined): { total: number; ids: string[] } {
  const [where, ...values] = namespace === undefined ? ["true"] : ["namespace = ?", namespace];
  const open = db.all(
    `WITH RECURSIVE open AS (
       SELECT (SELECT set_id FROM rollouts WHERE state <> 'done' ORDER BY set_id LIMIT 1) AS id
       UNION ALL SELECT (SELECT set_id FROM rollouts WHERE state <> 'done' AND set_id > open.id ORDER BY set_id LIMIT 1) FROM open WHERE id IS NOT NULL
     ) SELECT sets.id FROM open JOIN sets ON sets.id = open.id WHERE ${where} ORDER BY created DESC, sets.id DESC LIMIT ?`,
    ...values,
    most,
  );
  const newest = db.all(`SELECT id FROM sets WHERE ${where} ORDER BY created DESC, id DESC LIMIT ?`, ...values, most);
  const ids = [...new Set([...open, ...newest].map(({ id }) => String(id)))].slice(0, most);
  return { total: Number(db.get(`SELECT count(*) AS n FROM sets WHERE ${where}`, ...values)?.n), ids };
}

export function stateOf(db: Database, id: string, now: number): SetState {
  const set = setOf(db, id);
  const kept = db.all("SELECT what, name, n FROM counts WHERE set_id = ? AND n > 0", id);
  const counts = (kind: string): TableRow[] => kept.filter(({ what }) => what === kind);
  const ageIn = (state: "queued" | "running"): number | null => {
    const since = db.get(`SELECT min(since) AS since FROM rollouts WHERE set_id = ? AND state = '${state}'`, id)?.since;
    return since == null ? null : now - Number(since);
  };
  const listed = (kind: string, label: string): TableRow[] => counts(kind).map(({ name = null, n = null }) => ({ [label]: name, n }));
  return toSetState({
    set,
    isOver: isOver(db, id),
    isCancelling: db.get("SELECT 1 FROM endings WHERE set_id = ? LIMIT 1", id) !== undefined,
    admission: admissionOf(db, set),
    results: listed("result", "state"),
    expired: toExpired(set, expiredPlaces(set)),
    open: listed("rollout", "state"),
    ages: { queued: ageIn("queued"), running: ageIn("running") },
    groups: { n: set.groups ?? 0, whole: set.whole_groups ?? 0 },
    failures: listed("failure", "code"),
    ...parkedCounts(db, id),
    consumers: db.all("SELECT name, cursor FROM consumers WHERE set_id = ?", id),
  });
}

/** Throws `not_found`. */
export function isOver(db: Database, id: string): boolean {
  if (setOf(db, id).is_drained !== 1 || openOf(db, id) > 0) return false;
  return db.get(`SELECT 1 FROM groups WHERE set_id = ? AND ${isUnsettled} LIMIT 1`, id) === undefined;
}

/** Rollouts that are not over. */
function openOf(db: Database, id: string): number {
  const open = db.get("SELECT sum(n) AS n FROM counts WHERE set_id = ? AND what = 'rollout' AND name <> 'done'", id);
  return Number(open?.n ?? 0);
}

/** Returns how many are not over. A single one ends here; those of a set or a group are ordered to end. */
export function cancel(db: Database, what: CancelOrder, reason: string, now: number): number {
  assertThere(db, what);
  const { set, group = null, rollout } = what;
  if (rollout !== undefined) return cancelOne(db, set, rollout, reason, now);
  if (group === null) dropAllParked(db, set, "set_cancelled");
  const open = group === null ? openOf(db, set) : openOfGroup(db, set, group);
  if (open > 0) orderEnding(db, { set, key: group, isRest: false, reason });
  return open;
}

function cancelOne(db: Database, set: string, id: string, reason: string, now: number): number {
  const open = db.get("SELECT * FROM rollouts WHERE set_id = ? AND id = ? AND state <> 'done'", set, id);
  if (open === undefined) return 0;
  conclude(db, open, "cancelled", nothingMeasured("cancelled", reason), now);
  countCancelled(db, set, [String(open.group_key)]);
  return 1;
}

function openOfGroup(db: Database, set: string, key: string): number {
  return Number(db.get("SELECT count(*) AS n FROM rollouts WHERE set_id = ? AND group_key = ? AND state <> 'done'", set, key)?.n);
}

/** Throws `not_found`, naming what there is not. */
export function assertThere(db: Database, { set, group, rollout }: CancelOrder): void {
  setOf(db, set);
  if (group !== undefined && db.get("SELECT 1 FROM groups WHERE set_id = ? AND key = ?", set, group) === undefined)
    throw refusals.noGroup(set, group);
  if (rollout !== undefined && db.get("SELECT 1 FROM rollouts WHERE set_id = ? AND id = ?", set, rollout) === undefined)
    throw refusals.noRollout(set, rollout);
}

/** Its groups are whole with what they have (`settleSome`). */
export function drain(db: Database, id: string): void {
  setOf(db, id);
  db.run("UPDATE sets SET is_drained = 1 WHERE id = ?", id);
}
