/** Says which layout the other tables have. */
export const factsTable = "CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT";

/**
 * The tables of a ledger in one file. Times are Unix milliseconds; specifications and rows are JSON; `shuns` has |names| of nodes. Nodes
 * are of this process alone. `node` of a parked rollout: where its attempt still ends; `taken_by`: the rollout that goes on from it. `counts` are kept by triggers: to count the rollouts of a large set would stop this process.
 */
export const tables = `
CREATE TABLE IF NOT EXISTS sets (
  id TEXT PRIMARY KEY, namespace TEXT NOT NULL, key TEXT NOT NULL, spec TEXT NOT NULL, priority INTEGER NOT NULL, weight REAL NOT NULL,
  pass REAL NOT NULL DEFAULT 0, groups INTEGER NOT NULL DEFAULT 0, is_drained INTEGER NOT NULL DEFAULT 0, created INTEGER NOT NULL,
  admitted INTEGER NOT NULL DEFAULT 0, since_step INTEGER, since_groups INTEGER NOT NULL DEFAULT 0, spare INTEGER NOT NULL DEFAULT 0,
  expired_row INTEGER NOT NULL DEFAULT 0, expired_whole INTEGER NOT NULL DEFAULT 0,
  expired_rollouts INTEGER NOT NULL DEFAULT 0, expired_groups INTEGER NOT NULL DEFAULT 0,
  whole_groups INTEGER NOT NULL DEFAULT 0, UNIQUE (namespace, key)
) STRICT;
CREATE INDEX IF NOT EXISTS newest_sets ON sets (created, id);
CREATE INDEX IF NOT EXISTS newest_of_namespace ON sets (namespace, created, id);
CREATE TABLE IF NOT EXISTS namespaces (name TEXT PRIMARY KEY, spec_chars INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS groups (
  set_id TEXT NOT NULL REFERENCES sets, key TEXT NOT NULL, number INTEGER NOT NULL, task TEXT NOT NULL, task_id TEXT NOT NULL,
  task_hash TEXT NOT NULL, size INTEGER NOT NULL, places INTEGER NOT NULL, submitted INTEGER NOT NULL DEFAULT 0, finished INTEGER NOT NULL DEFAULT 0,
  standing INTEGER NOT NULL DEFAULT 0, whole INTEGER, is_admitted INTEGER NOT NULL DEFAULT 0, step INTEGER,
  enough INTEGER, cut_after INTEGER, cut_ms INTEGER, cut_at INTEGER, is_stopped INTEGER NOT NULL DEFAULT 0,
  is_expiring INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (set_id, key)
) STRICT;
CREATE INDEX IF NOT EXISTS whole_groups ON groups (set_id, whole) WHERE whole IS NOT NULL;
CREATE INDEX IF NOT EXISTS waiting_groups ON groups (set_id, number) WHERE whole IS NULL AND is_admitted = 0;
CREATE INDEX IF NOT EXISTS expiring_groups ON groups (set_id, key) WHERE is_expiring = 1;
CREATE INDEX IF NOT EXISTS partial_groups ON groups (set_id) WHERE whole IS NULL AND submitted < places AND finished >= submitted;
CREATE INDEX IF NOT EXISTS begun_groups ON groups (set_id, step) WHERE whole IS NULL AND step IS NOT NULL;
CREATE INDEX IF NOT EXISTS timed_groups ON groups (cut_at) WHERE whole IS NULL AND cut_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS rollouts (
  place INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, set_id TEXT NOT NULL, group_key TEXT NOT NULL,
  sample_index INTEGER NOT NULL, state TEXT NOT NULL DEFAULT 'queued', attempt INTEGER NOT NULL DEFAULT 0,
  failures INTEGER NOT NULL DEFAULT 0, lost INTEGER NOT NULL DEFAULT 0, node TEXT, since INTEGER NOT NULL,
  shuns TEXT, earlier TEXT, UNIQUE (set_id, group_key, sample_index)
) STRICT;
CREATE INDEX IF NOT EXISTS queued_rollouts ON rollouts (set_id, place) WHERE state = 'queued';
CREATE INDEX IF NOT EXISTS queued_since ON rollouts (set_id, since) WHERE state = 'queued';
CREATE INDEX IF NOT EXISTS running_rollouts ON rollouts (set_id, node) WHERE state = 'running';
CREATE INDEX IF NOT EXISTS open_rollouts ON rollouts (set_id, place) WHERE state <> 'done';
CREATE TABLE IF NOT EXISTS endings (
  number INTEGER PRIMARY KEY, set_id TEXT NOT NULL, group_key TEXT, is_rest INTEGER NOT NULL, reason TEXT NOT NULL, upto INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS endings_of_set ON endings (set_id);
CREATE TABLE IF NOT EXISTS results (
  seq INTEGER PRIMARY KEY, set_id TEXT NOT NULL, rollout_id TEXT NOT NULL UNIQUE REFERENCES rollouts (id), group_key TEXT NOT NULL,
  sample_index INTEGER NOT NULL, state TEXT NOT NULL, code TEXT, row TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS results_of_set ON results (set_id, seq, state, code);
CREATE INDEX IF NOT EXISTS results_of_group ON results (set_id, group_key, sample_index);
CREATE TABLE IF NOT EXISTS counts (
  set_id TEXT NOT NULL, what TEXT NOT NULL, name TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (set_id, what, name)
) STRICT, WITHOUT ROWID;
${counted("new_rollouts", "INSERT ON rollouts", "rollout", "new.state", 1)}
${counted("left_rollouts", "UPDATE OF state ON rollouts WHEN old.state <> new.state", "rollout", "old.state", -1)}
${counted("moved_rollouts", "UPDATE OF state ON rollouts WHEN old.state <> new.state", "rollout", "new.state", 1)}
${counted("new_results", "INSERT ON results", "result", "new.state", 1)}
${counted("new_failures", "INSERT ON results WHEN new.code IS NOT NULL", "failure", "new.code", 1)}
CREATE TABLE IF NOT EXISTS removals (rollout_id TEXT PRIMARY KEY, set_id TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS superseded (rollout_id TEXT PRIMARY KEY, set_id TEXT NOT NULL, noted INTEGER NOT NULL) STRICT;
CREATE TRIGGER IF NOT EXISTS note_superseded AFTER INSERT ON results
WHEN (SELECT attempt FROM rollouts WHERE id = new.rollout_id) > CASE new.state WHEN 'cancelled' THEN 0 ELSE 1 END BEGIN
  INSERT INTO superseded VALUES (new.rollout_id, new.set_id, new.row ->> 'finished') ON CONFLICT (rollout_id) DO UPDATE SET noted = excluded.noted;
END;
CREATE TABLE IF NOT EXISTS parked (
  rollout_id TEXT PRIMARY KEY, set_id TEXT NOT NULL, task_hash TEXT NOT NULL, group_id TEXT NOT NULL, sample_index INTEGER NOT NULL,
  attempt INTEGER NOT NULL, step INTEGER, since INTEGER NOT NULL, node TEXT, taken_by TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS unparked (set_id TEXT NOT NULL, reason TEXT NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (set_id, reason)) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tallies (set_id TEXT PRIMARY KEY, tally TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS histories (set_id TEXT NOT NULL, task_id TEXT NOT NULL, history TEXT NOT NULL, PRIMARY KEY (set_id, task_id)) STRICT, WITHOUT ROWID;
DROP TABLE IF EXISTS nodes;
CREATE TABLE nodes (
  name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, slots INTEGER NOT NULL, until INTEGER NOT NULL, is_draining INTEGER NOT NULL DEFAULT 0,
  report TEXT, engines TEXT
) STRICT;
CREATE TABLE IF NOT EXISTS consumers (
  name TEXT NOT NULL, set_id TEXT NOT NULL, cursor TEXT NOT NULL, PRIMARY KEY (set_id, name)
) STRICT;
`;

function counted(trigger: string, event: string, what: string, name: string, n: number): string {
  return `CREATE TRIGGER IF NOT EXISTS count_${trigger} AFTER ${event} BEGIN
  INSERT INTO counts VALUES (new.set_id, '${what}', ${name}, ${n}) ON CONFLICT (set_id, what, name) DO UPDATE SET n = n + ${n};
END;`;
}
