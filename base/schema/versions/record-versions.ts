/**
 * The version that each kind of record states in `schema_version`, and how a record of the version before becomes one of
 * today. To change a record so that an older reader would misread it: raise `now`, write `fromBefore`, and keep the golden
 * folder of the old version (test/base/schema/versions/).
 *
 * `index.json` and the sums that a ledger keeps of its results are caches. They state a version too, and another one is
 * made anew from the records. Tables of a ledger: service/ledger/layout.ts.
 */

/** A record as it was read from JSON. */
export type PlainRecord = Readonly<Record<string, unknown>>;

export type Versions = {
  /** What `schema_version` says today. */
  readonly now: number;
  /**
   * Returns a record of the version before as one of `now`; `schema_version` is set afterwards. In a session log it is
   * called for each entry. Absent: no older version is read.
   */
  readonly fromBefore?: (record: PlainRecord) => PlainRecord;
};

export const recordVersions = {
  /** A session log. Its first entry, `opened`, states the version of all its entries. */
  log: { now: 2 },
  /** A line of trajectories.jsonl. */
  trajectory: { now: 2 },
  /** A line of rollouts.jsonl. One that states no version is of version 1. */
  rollout: { now: 1 },
  /** A row of the format `flat`. */
  row: { now: 3 },
} as const satisfies Record<string, Versions>;

/** Returns the version that a record states; null: it states none. */
export function statedVersion(record: unknown): number | null {
  const stated = isRecord(record) ? record.schema_version : null;
  return typeof stated === "number" ? stated : null;
}

/** Returns a sentence about a version that is newer than ours; null: it is not. */
export function whyNewer(stated: number | null, { now }: Versions): string | null {
  if (stated === null || stated <= now) return null;
  return `this Alidade reads ${now} at most: update Alidade`;
}

/** Returns a record of the version before as one of today. Leaves any other as it is. `stated`: the record's version. */
export function asOfNow(record: unknown, stated: number | null, { now, fromBefore }: Versions): unknown {
  if (stated !== now - 1 || fromBefore === undefined || !isRecord(record)) return record;
  const changed = fromBefore(record);
  return "schema_version" in record ? { ...changed, schema_version: now } : changed;
}

function isRecord(value: unknown): value is PlainRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
