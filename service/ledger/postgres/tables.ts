/**
 * The tables of a ledger in one schema. Times are Unix milliseconds of the server's clock, the only one that leases are held
 * against; specifications, tasks and rows are JSON as text; `shuns` has |names| of nodes.
 *
 * Results and whole groups have two numbers, `(xid, seq)`: the transaction that wrote them, and their order in it. A plain
 * sequence is drawn before the commit, so a reader behind a higher number would never see a lower one that is committed later.
 *
 * A transaction that is open for long, also one of another database user, keeps each version of each row: vacuum may remove none. So no
 * statement that is asked often may step over rows that are over, or over versions of one row:
 *
 *   - `line` has the sets with queued rollouts, and `turns` what each of their claims came to. A claim reads the newest turn of a
 *     set and adds one; it changes no row that the next claim reads.
 *   - Queued rollouts are found behind the last one that was claimed (`upto`), except those that came back into the line (`is_again`).
 *   - `endings` are read behind the places to which they have come.
 */
import type { Layout } from "../layout.ts";
import type { Transaction } from "./connection/postgres-database.ts";

export const now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
export const ownXid = "pg_current_xact_id()::text::bigint";
/** Each transaction below it is over, and none below it begins. */
export const settledXid = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint";

/** Not begun yet, so no row can have it. */
export const nextXid = "pg_snapshot_xmax(pg_current_snapshot())::text::bigint";

/** Vacuum comes behind fifty rows that are over. */
const often = "autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_cost_delay = 0";
/** Few rows, each written again and again: its next versions have room on its page. */
const busy = `WITH (fillfactor = 30, ${often})`;

/** For each task of a set with `allocation`, and one for the whole set. */
const histories = `CREATE TABLE histories (
  set_id text NOT NULL, task_id text NOT NULL, history text NOT NULL, PRIMARY KEY (set_id, task_id)
) ${busy}`;

/** Parked rollouts. `node`: the node that has not ended the rollout's attempt yet. `taken_by`: the rollout that goes on from it. */
const parked = `CREATE TABLE parked (
  rollout_id text PRIMARY KEY, set_id text NOT NULL, task_hash text NOT NULL, group_id text NOT NULL, sample_index integer NOT NULL,
  attempt integer NOT NULL, step bigint, since bigint NOT NULL, node text, taken_by text
) ${busy}`;

/** Counts the rollouts that are no longer parked, for each reason. */
const unparked = `CREATE TABLE unparked (set_id text NOT NULL, reason text NOT NULL, n bigint NOT NULL, PRIMARY KEY (set_id, reason)) ${busy}`;

/** A schema has the tables that stood here when it was made, so each new table or index is a new layout. */
export const layout: Layout = { now: 13, fromBefore: [parked, unparked] };

/** Many rows that pass through: vacuum comes long before a fifth of them are over, as it would by default. */
const passing = (fillfactor: number): string =>
  `WITH (fillfactor = ${fillfactor}, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000, autovacuum_analyze_scale_factor = 0.05)`;

export const tables = `
CREATE TABLE facts (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE watch (looked bigint NOT NULL, came_back bigint NOT NULL) ${busy};
CREATE TABLE sets (
  id text PRIMARY KEY, namespace text NOT NULL, key text NOT NULL, spec text NOT NULL, priority integer NOT NULL, weight double precision NOT NULL,
  groups integer NOT NULL DEFAULT 0, is_drained boolean NOT NULL DEFAULT false, drained_xid bigint,
  created bigint NOT NULL, admitted integer NOT NULL DEFAULT 0, since_step bigint, since_groups integer NOT NULL DEFAULT 0, spare integer NOT NULL DEFAULT 0,
  expired_xid bigint NOT NULL DEFAULT 0, expired_seq bigint NOT NULL DEFAULT 0,
  expired_whole_xid bigint NOT NULL DEFAULT 0, expired_whole_seq bigint NOT NULL DEFAULT 0,
  expired_groups bigint NOT NULL DEFAULT 0, expired_rollouts bigint NOT NULL DEFAULT 0,
  rollouts bigint NOT NULL DEFAULT 0, counted_xid bigint NOT NULL DEFAULT 0, UNIQUE (namespace, key)
) WITH (fillfactor = 70);
CREATE INDEX drained_sets ON sets (drained_xid) WHERE drained_xid IS NOT NULL;
CREATE INDEX newest_sets ON sets (created, id);
CREATE INDEX newest_of_namespace ON sets (namespace, created, id);
CREATE TABLE namespaces (name text PRIMARY KEY, spec_chars bigint NOT NULL);
CREATE TABLE groups (
  set_id text NOT NULL, key text NOT NULL, number integer NOT NULL, task text NOT NULL, task_id text NOT NULL, task_hash text NOT NULL,
  size integer NOT NULL, wanted integer NOT NULL, submitted integer NOT NULL DEFAULT 0, finished integer NOT NULL DEFAULT 0,
  standing integer NOT NULL DEFAULT 0, is_admitted boolean NOT NULL DEFAULT false, step bigint,
  enough integer, cut_after integer, cut_ms bigint, cut_at bigint, is_stopped boolean NOT NULL DEFAULT false,
  whole_xid bigint, whole_seq bigint, is_expiring boolean NOT NULL DEFAULT false, PRIMARY KEY (set_id, key)
) ${passing(80)};
CREATE INDEX whole_groups ON groups (set_id, whole_xid, whole_seq) WHERE whole_xid IS NOT NULL;
CREATE INDEX newest_whole_groups ON groups (whole_xid) WHERE whole_xid IS NOT NULL;
CREATE INDEX begun_groups ON groups (set_id, step) WHERE whole_xid IS NULL AND step IS NOT NULL;
CREATE INDEX timed_groups ON groups (cut_at) WHERE whole_xid IS NULL AND cut_at IS NOT NULL;
CREATE INDEX waiting_groups ON groups (set_id, number) WHERE whole_xid IS NULL AND NOT is_admitted;
CREATE INDEX expiring_groups ON groups (set_id, key) WHERE is_expiring;
CREATE INDEX partial_groups ON groups (set_id, key) WHERE whole_xid IS NULL AND wanted > submitted;
CREATE SEQUENCE places;
CREATE SEQUENCE epochs;
CREATE TABLE rollouts (
  id text PRIMARY KEY, place bigint NOT NULL DEFAULT nextval('places'), set_id text NOT NULL, group_key text NOT NULL,
  sample_index integer NOT NULL, state text NOT NULL DEFAULT 'queued', attempt integer NOT NULL DEFAULT 0,
  failures integer NOT NULL DEFAULT 0, lost integer NOT NULL DEFAULT 0, node text, since bigint NOT NULL,
  shuns text, earlier text, is_again boolean NOT NULL DEFAULT false
) ${passing(70)};
CREATE INDEX queued_rollouts ON rollouts (set_id, place) WHERE state = 'queued' AND NOT is_again;
CREATE INDEX queued_again ON rollouts (set_id, place) WHERE state = 'queued' AND is_again;
CREATE INDEX waiting_rollouts ON rollouts (set_id, place) WHERE state IN ('held', 'later');
CREATE INDEX running_rollouts ON rollouts (node, place) WHERE state = 'running';
CREATE INDEX running_of_set ON rollouts (set_id, place) WHERE state = 'running';
CREATE INDEX open_rollouts ON rollouts (set_id, group_key) WHERE state <> 'done';
CREATE TABLE line (
  set_id text PRIMARY KEY, priority integer NOT NULL, weight double precision NOT NULL, created bigint NOT NULL, is_eval boolean NOT NULL
) ${busy};
CREATE TABLE turns (
  set_id text NOT NULL, number bigint GENERATED ALWAYS AS IDENTITY, pass double precision NOT NULL, upto bigint NOT NULL,
  PRIMARY KEY (set_id, number)
) WITH (${often});
CREATE TABLE endings (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, set_id text NOT NULL, group_key text, is_rest boolean NOT NULL, reason text NOT NULL,
  upto bigint NOT NULL, waiting_from bigint NOT NULL DEFAULT 0, queued_from bigint NOT NULL DEFAULT 0
) ${busy};
CREATE INDEX endings_of_set ON endings (set_id);
CREATE TABLE results (
  xid bigint NOT NULL DEFAULT (${ownXid}), seq bigint NOT NULL DEFAULT nextval('places'), set_id text NOT NULL,
  rollout_id text PRIMARY KEY, group_key text NOT NULL, sample_index integer NOT NULL, state text NOT NULL, code text, entry text NOT NULL,
  finished bigint NOT NULL DEFAULT (${now})
);
CREATE INDEX results_of_set ON results (set_id, xid, seq) INCLUDE (state, code);
CREATE INDEX newest_results ON results (xid);
CREATE INDEX results_of_group ON results (set_id, group_key, sample_index);
CREATE TABLE counts (set_id text NOT NULL, what text NOT NULL, name text NOT NULL, n bigint NOT NULL, PRIMARY KEY (set_id, what, name)) ${busy};
CREATE TABLE removals (rollout_id text PRIMARY KEY, set_id text NOT NULL) ${passing(100)};
CREATE TABLE superseded (rollout_id text PRIMARY KEY, set_id text NOT NULL, noted bigint NOT NULL);
CREATE TABLE tallies (set_id text PRIMARY KEY, tally text NOT NULL);
${histories};
${parked};
${unparked};
CREATE TABLE nodes (
  name text PRIMARY KEY, epoch bigint NOT NULL, slots integer NOT NULL, until bigint NOT NULL, is_draining boolean NOT NULL DEFAULT false,
  report text, engines text
) ${busy};
CREATE TABLE consumers (name text NOT NULL, set_id text NOT NULL, cursor text NOT NULL, PRIMARY KEY (set_id, name)) ${busy};
INSERT INTO watch SELECT ${now}, 0;
`;

/** One lock of the schema by its name, until the transaction ends. */
export async function lock(db: Transaction, name: string): Promise<void> {
  await db.run("SELECT pg_advisory_xact_lock(hashtextextended(current_schema()::text || '/' || $1::text, 0))", name);
}

/** The same, where no other transaction has it. */
export async function tryLock(db: Transaction, name: string): Promise<boolean> {
  const sql = "SELECT pg_try_advisory_xact_lock(hashtextextended(current_schema()::text || '/' || $1::text, 0)) AS is_ours";
  return (await db.get(sql, name))?.is_ours === true;
}
