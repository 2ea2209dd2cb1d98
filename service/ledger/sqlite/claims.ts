/** Nodes, their leases, and the attempts that they have. Each function runs inside a transaction. */
import type { HeardNode, NodeReport } from "../control-state.ts";
import { type EnginePlaces, type EngineUse, grantPlaces } from "../engine-places.ts";
import { earlierOf, toClaim, toHeardNode, toNodePlaces, toNodeState } from "../from-rows.ts";
import {
  type AttemptName,
  type Claim,
  type ClaimedSets,
  elsewhereSeconds,
  type Lease,
  leaseSeconds,
  type NodeSpec,
  type NodeState,
  type Orders,
} from "../ledger.ts";
import type { AttemptResult, EarlierAttempt } from "../records.ts";
import { refusals } from "../refusals.ts";
import { type NodeLosing, nodeLost, nodesDied, setAside, withBlameless } from "../result-row.ts";
import { admit, noteBegun } from "./admit.ts";
import { conclude } from "./conclude.ts";
import type { Database, TableRow } from "./database.ts";
import { isToEnd } from "./endings.ts";
import { freeParked, takeUp } from "./parked.ts";
import { nextNumber } from "./places.ts";
import { noteFenced } from "./superseded.ts";

export function join(db: Database, { name, slots, blameless = [] }: NodeSpec, now: number): Lease {
  loseAll(db, name, now, { by: "replaced", blameless });
  const row = db.get(
    `INSERT INTO nodes (name, epoch, slots, until) VALUES (?, ?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, slots = excluded.slots, until = excluded.until, is_draining = 0, report = NULL,
       engines = NULL
     RETURNING epoch`,
    name,
    nextNumber(db, "epoch"),
    slots,
    now + leaseSeconds * 1000,
  );
  return { node: name, epoch: Number(row?.epoch), seconds: leaseSeconds };
}

export function leave(db: Database, lease: Lease, now: number): void {
  if (db.run("DELETE FROM nodes WHERE name = ? AND epoch = ?", lease.node, lease.epoch) === 0) return;
  db.run("UPDATE rollouts SET state = 'queued', node = NULL, since = ? WHERE node = ? AND state = 'running'", now, lease.node);
  freeParked(db, lease.node);
}

export function beat(db: Database, lease: Lease, running: readonly AttemptName[], now: number): Orders {
  const node = nodeOf(db, lease);
  if (node === undefined) return { isLost: true, isDraining: false, stop: [...running] };
  db.run("UPDATE nodes SET until = ? WHERE name = ?", now + leaseSeconds * 1000, lease.node);
  const stop = running.filter((one) => {
    const current = currentOf(db, one);
    return current === undefined || current.node !== lease.node;
  });
  return { isLost: false, isDraining: node.is_draining === 1, stop };
}

export function grant(db: Database, lease: Lease, uses: readonly EngineUse[]): EnginePlaces[] {
  if (nodeOf(db, lease) === undefined) return [];
  const others = db.all("SELECT name, engines FROM nodes WHERE name <> ?", lease.node).map(toNodePlaces);
  const granted = grantPlaces(lease.node, uses, others);
  db.run("UPDATE nodes SET engines = ? WHERE name = ?", JSON.stringify(granted), lease.node);
  return granted;
}

function nodeOf(db: Database, { node, epoch }: Lease): TableRow | undefined {
  return db.get("SELECT * FROM nodes WHERE name = ? AND epoch = ?", node, epoch);
}

/** The rollout, while this attempt at it runs, and it is not to end as cancelled. */
function currentOf(db: Database, { rollout_id, attempt }: AttemptName): TableRow | undefined {
  return db.get(`SELECT * FROM rollouts WHERE id = ? AND attempt = ? AND state = 'running' AND NOT ${isToEnd}`, rollout_id, attempt);
}

export function claim(db: Database, lease: Lease, free: number, from: ClaimedSets, now: number): Claim[] {
  const node = nodeOf(db, lease);
  if (node === undefined || node.is_draining === 1) return [];
  admit(db, now);
  const others = db.get("SELECT 1 FROM nodes WHERE name <> ? AND is_draining = 0 AND until >= ?", lease.node, now);
  const claimer = { shunned: others === undefined ? null : lease.node, shunnedSince: now - elsewhereSeconds * 1000 };
  const claims: Claim[] = [];
  while (claims.length < free) {
    const [set, rollout] = nextRollout(db, from, claimer) ?? [];
    if (!set || !rollout) break;
    db.run("UPDATE sets SET pass = pass + 1 / weight WHERE id = ?", set.id as string);
    db.run(
      "UPDATE rollouts SET state = 'running', attempt = attempt + 1, node = ?, since = ? WHERE id = ?",
      lease.node,
      now,
      rollout.id as string,
    );
    const claimed = takeUp(db, claimOf(db, rollout.id as string), now);
    noteBegun(db, claimed, now);
    claims.push(claimed);
  }
  return claims;
}

function claimOf(db: Database, rollout: string): Claim {
  const row = db.get(
    `SELECT rollouts.*, number, size, task, task_hash, spec FROM rollouts
     JOIN groups ON groups.set_id = rollouts.set_id AND groups.key = group_key JOIN sets ON sets.id = rollouts.set_id WHERE rollouts.id = ?`,
    rollout,
  );
  return toClaim(row as TableRow);
}

/** `shunned`: its name, where rollouts that it broke wait for others; `shunnedSince`: those that were broken before it do not. */
type Claimer = { shunned: string | null; shunnedSince: number };

/** The highest priority first; among equals the set that has had least for its weight. What is submitted into a set that ends waits until that is over. */
function nextRollout(db: Database, from: ClaimedSets, { shunned, shunnedSince }: Claimer): [set: TableRow, rollout: TableRow] | null {
  const waits = `state = 'queued' AND (shuns IS NULL OR ? IS NULL OR instr(shuns, '|' || ? || '|') = 0 OR since < ?) AND NOT ${isToEnd}
     AND NOT EXISTS (SELECT 1 FROM endings WHERE endings.set_id = rollouts.set_id AND endings.group_key IS NULL)`;
  const claimer = [shunned, shunned, shunnedSince];
  const set = db.get(
    `SELECT id FROM sets WHERE EXISTS (SELECT 1 FROM rollouts WHERE set_id = sets.id AND ${waits})
     AND (? = 'any' OR spec ->> 'purpose' = 'eval') ORDER BY priority DESC, pass, created, id LIMIT 1`,
    ...claimer,
    from,
  );
  const rollout = set && db.get(`SELECT id FROM rollouts WHERE set_id = ? AND ${waits} ORDER BY place LIMIT 1`, String(set.id), ...claimer);
  return set && rollout ? [set, rollout] : null;
}

export function release(db: Database, name: AttemptName, broken: string | null, now: number): "queued" | "fenced" {
  const current = currentOf(db, name);
  if (current === undefined) return "fenced";
  if (broken === null) db.run("UPDATE rollouts SET state = 'queued', node = NULL, since = ? WHERE id = ?", now, name.rollout_id);
  else
    db.run(
      "UPDATE rollouts SET state = 'queued', failures = failures + 1, shuns = coalesce(shuns, '|') || node || '|', node = NULL, since = ?, earlier = ? WHERE id = ?",
      now,
      JSON.stringify(withBroken(current, broken)),
      name.rollout_id,
    );
  return "queued";
}

/** The attempts before the next one, with the one that ran. */
function withBroken(rollout: TableRow, code: string): EarlierAttempt[] {
  return [...earlierOf(rollout), { attempt: Number(rollout.attempt), node: String(rollout.node), code }];
}

export function finish(db: Database, name: AttemptName, result: AttemptResult, now: number): "accepted" | "fenced" {
  const current = currentOf(db, name);
  if (current === undefined) {
    noteFenced(db, name, now);
    return "fenced";
  }
  conclude(db, current, result.state, result, now);
  return "accepted";
}

export function endAside(db: Database, rollout: string, why: string, now: number): boolean {
  const open = db.get(`SELECT * FROM rollouts WHERE id = ? AND state <> 'done' AND NOT ${isToEnd}`, rollout);
  if (open !== undefined) conclude(db, open, "failed", setAside(why), now);
  return open !== undefined;
}

/**
 * Puts the node's rollouts back into the line, at their old places. Marks the attempts that the node calls `blameless`. Then ends
 * the rollouts under which too many nodes died.
 */
export function loseAll(db: Database, node: string, now: number, { by, blameless = [] }: NodeLosing): void {
  const held = db.all("SELECT * FROM rollouts WHERE node = ? AND state = 'running' ORDER BY place", node);
  for (const rollout of held)
    db.run(
      "UPDATE rollouts SET state = 'queued', node = NULL, since = ?, lost = lost + 1, earlier = ? WHERE id = ?",
      now,
      JSON.stringify(withBroken(rollout, nodeLost)),
      String(rollout.id),
    );
  freeParked(db, node);
  for (const one of blameless) clear(db, node, one);
  for (const { id } of held) {
    const rollout = db.get("SELECT * FROM rollouts WHERE id = ?", String(id)) as TableRow;
    const end = nodesDied(Number(rollout.lost), earlierOf(rollout), by);
    if (end !== null) conclude(db, rollout, "failed", end, now);
  }
}

/** Records that the node does not blame a lost attempt. */
function clear(db: Database, node: string, name: AttemptName): void {
  const open = db.get("SELECT * FROM rollouts WHERE id = ? AND state <> 'done'", name.rollout_id);
  const earlier = open && withBlameless(earlierOf(open), node, name);
  if (earlier) db.run("UPDATE rollouts SET lost = lost - 1, earlier = ? WHERE id = ?", JSON.stringify(earlier), name.rollout_id);
}

export function expire(db: Database, now: number): string[] {
  const dead = db.all("SELECT name FROM nodes WHERE until < ?", now).map(({ name }) => String(name));
  for (const name of dead) {
    loseAll(db, name, now, { by: "silent" });
    db.run("DELETE FROM nodes WHERE name = ?", name);
  }
  return dead;
}

export function nodes(db: Database, now: number): NodeState[] {
  return db
    .all(
      `SELECT *, until - ? AS lease_ms, (SELECT count(*) FROM rollouts WHERE node = name AND state = 'running') AS running
       FROM nodes ORDER BY name`,
      now,
    )
    .map(toNodeState);
}

export function saveReport(db: Database, { node, epoch }: Lease, report: NodeReport): void {
  db.run("UPDATE nodes SET report = ? WHERE name = ? AND epoch = ?", JSON.stringify(report), node, epoch);
}

export function reports(db: Database): HeardNode[] {
  return db.all("SELECT name, report FROM nodes ORDER BY name").map(toHeardNode);
}

export function drainNode(db: Database, name: string): void {
  if (db.run("UPDATE nodes SET is_draining = 1 WHERE name = ?", name) === 0) throw refusals.noNode(name);
}
