/** Nodes, their leases, and the attempts that they have. Each function runs inside a transaction. */
import type { HeardNode, NodeReport } from "../control-state.ts";
import { toClaim, toHeardNode, toNodeState } from "../from-rows.ts";
import {
  type AttemptName,
  beatSeconds,
  type Claim,
  type Lease,
  leaseSeconds,
  mostLost,
  type NodeSpec,
  type NodeState,
  type Orders,
} from "../ledger.ts";
import type { AttemptResult } from "../records.ts";
import { refusals } from "../refusals.ts";
import { nodesDied } from "../result-row.ts";
import { admit, noteBegun } from "./admit.ts";
import { endRollouts } from "./end-rollouts.ts";
import type { Transaction } from "./postgres-database.ts";
import { shareSlots } from "./share-slots.ts";
import { lockGroupOf } from "./stop-groups.ts";
import { lock, now } from "./tables.ts";

const leaseMs = leaseSeconds * 1000;

/** Three beats without a look at the leases: the database, or all that look at it, were away, and nodes could not renew theirs. */
const awayMs = 3 * beatSeconds * 1000;

export async function join(db: Transaction, { name, slots }: NodeSpec): Promise<Lease> {
  const row = await db.get(
    `INSERT INTO nodes (name, epoch, slots, until) VALUES ($1, nextval('epochs'), $2, ${now} + ${leaseMs})
     ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, slots = excluded.slots, until = excluded.until, is_draining = false,
       report = NULL
     RETURNING epoch`,
    name,
    slots,
  );
  await loseAll(db, name);
  return { node: name, epoch: Number(row?.epoch), seconds: leaseSeconds };
}

export async function leave(db: Transaction, lease: Lease): Promise<void> {
  if ((await db.run("DELETE FROM nodes WHERE name = $1 AND epoch = $2", lease.node, lease.epoch)) === 0) return;
  await db.run(`UPDATE rollouts SET state = 'queued', node = NULL, since = ${now} WHERE node = $1 AND state = 'running'`, lease.node);
}

export async function beat(db: Transaction, lease: Lease, running: readonly AttemptName[]): Promise<Orders> {
  const node = await db.get(
    `UPDATE nodes SET until = ${now} + ${leaseMs} WHERE name = $1 AND epoch = $2 RETURNING is_draining`,
    lease.node,
    lease.epoch,
  );
  if (node === undefined) return { isLost: true, isDraining: false, stop: [...running] };
  const own = await db.all(
    `SELECT id, attempt, since < ${now} - ${leaseMs} AS is_old FROM rollouts WHERE node = $1 AND state = 'running'`,
    lease.node,
  );
  const attempts = new Map(own.map(({ id, attempt }) => [String(id), Number(attempt)]));
  const known = new Set(running.map(({ rollout_id }) => rollout_id));
  // The answer to its claim was lost on the way: the node does not know that they are its own.
  const unknown = own.filter(({ id, is_old }) => is_old === true && !known.has(String(id))).map(({ id }) => String(id));
  if (unknown.length > 0)
    await db.run(
      `UPDATE rollouts SET state = 'queued', node = NULL, since = ${now} WHERE id = ANY ($1) AND node = $2`,
      unknown,
      lease.node,
    );
  const stop = running.filter(({ rollout_id, attempt }) => attempts.get(rollout_id) !== attempt);
  return { isLost: false, isDraining: node.is_draining === true, stop };
}

/**
 * One claim at a time, over all nodes: the shares of the sets are exact, and no two look at the same rollout. `isDry`: there is
 * nothing more before something is queued.
 */
export async function claim(db: Transaction, lease: Lease, free: number): Promise<{ claims: Claim[]; isDry: boolean }> {
  // Locked, so that the node cannot be taken for dead while it claims.
  const node = await db.get("SELECT is_draining FROM nodes WHERE name = $1 AND epoch = $2 FOR UPDATE", lease.node, lease.epoch);
  if (node === undefined || node.is_draining === true) return { claims: [], isDry: true };
  await lock(db, "claim");
  const waiting = await admit(db);
  const shares = shareSlots(await waitingSets(db, free), free);
  const claims = new Map<string, Claim[]>();
  for (const set of new Set(shares)) claims.set(set, await claimOf(db, lease, set, shares.filter((one) => one === set).length));
  const found = shares.flatMap((set) => claims.get(set)?.shift() ?? []);
  return { claims: found, isDry: found.length < free && waiting === 0 };
}

async function waitingSets(db: Transaction, free: number) {
  const rows = await db.all(
    `SELECT id, priority, weight, pass, created, waiting.queued FROM sets CROSS JOIN LATERAL (
       SELECT count(*) AS queued FROM (SELECT FROM rollouts WHERE set_id = sets.id AND state = 'queued' LIMIT $1) AS few
     ) AS waiting WHERE waiting.queued > 0`,
    free,
  );
  return rows.map(({ id, priority, weight, pass, created, queued }) => ({
    id: String(id),
    priority: Number(priority),
    weight: Number(weight),
    pass: Number(pass),
    created: Number(created),
    queued: Number(queued),
  }));
}

/** The first ones of the set's line. A row that another transaction is changing is no queued one by now. */
async function claimOf(db: Transaction, { node }: Lease, set: string, count: number): Promise<Claim[]> {
  await db.run("UPDATE sets SET pass = pass + $2 / weight WHERE id = $1", set, count);
  const rows = await db.all(
    `WITH next AS MATERIALIZED (
       SELECT id FROM rollouts WHERE set_id = $1 AND state = 'queued' ORDER BY place LIMIT $2 FOR UPDATE SKIP LOCKED
     )
     UPDATE rollouts SET state = 'running', attempt = attempt + 1, node = $3, since = ${now} FROM next, groups, sets
     WHERE rollouts.id = next.id AND groups.set_id = rollouts.set_id AND groups.key = group_key AND sets.id = rollouts.set_id
     RETURNING rollouts.*, number, size, task, task_hash, spec`,
    set,
    count,
    node,
  );
  const claims = rows.toSorted((one, other) => Number(one.place) - Number(other.place)).map(toClaim);
  await noteBegun(db, claims);
  return claims;
}

export async function release(db: Transaction, { rollout_id, attempt }: AttemptName, failed: boolean): Promise<"queued" | "fenced"> {
  const changed = await db.run(
    `UPDATE rollouts SET state = 'queued', node = NULL, since = ${now}, failures = failures + $3
     WHERE id = $1 AND attempt = $2 AND state = 'running'`,
    rollout_id,
    attempt,
    failed ? 1 : 0,
  );
  return changed === 1 ? "queued" : "fenced";
}

export async function finish(db: Transaction, { rollout_id, attempt }: AttemptName, result: AttemptResult): Promise<"accepted" | "fenced"> {
  await lockGroupOf(db, rollout_id);
  const ended = await endRollouts(db, { ids: [rollout_id], attempt, state: result.state, result });
  return ended === 1 ? "accepted" : "fenced";
}

/** What the node had goes back into the line, at its old place; what too many nodes died of ends here. The caller has locked the node. */
async function loseAll(db: Transaction, node: string): Promise<void> {
  const held = await db.all("SELECT id, lost FROM rollouts WHERE node = $1 AND state = 'running' ORDER BY place FOR UPDATE", node);
  const ids = held.map(({ id }) => String(id));
  await db.run(`UPDATE rollouts SET state = 'queued', node = NULL, since = ${now}, lost = lost + 1 WHERE id = ANY ($1)`, ids);
  const ends = held.filter(({ lost }) => Number(lost) + 1 >= mostLost).map(({ id }) => String(id));
  await endRollouts(db, { ids: ends, attempt: null, state: "failed", result: nodesDied(mostLost) });
}

export async function expire(db: Transaction): Promise<string[]> {
  const watch = await db.get(
    `UPDATE watch SET came_back = CASE WHEN ${now} - looked > ${awayMs} THEN ${now} ELSE came_back END, looked = ${now}
     RETURNING came_back + ${leaseMs} > ${now} AS is_fresh`,
  );
  if (watch?.is_fresh === true) return [];
  const dead = await db.all(`SELECT name FROM nodes WHERE until < ${now} ORDER BY name FOR UPDATE SKIP LOCKED`);
  const names = dead.map(({ name }) => String(name));
  for (const name of names) {
    await loseAll(db, name);
    await db.run("DELETE FROM nodes WHERE name = $1", name);
  }
  return names;
}

export async function nodes(db: Transaction): Promise<NodeState[]> {
  const rows = await db.all(
    `SELECT *, until - ${now} AS lease_ms, (SELECT count(*) FROM rollouts WHERE node = name AND state = 'running') AS running
     FROM nodes ORDER BY name`,
  );
  return rows.map(toNodeState);
}

export async function saveReport(db: Transaction, { node, epoch }: Lease, report: NodeReport): Promise<void> {
  await db.run("UPDATE nodes SET report = $3 WHERE name = $1 AND epoch = $2", node, epoch, JSON.stringify(report));
}

export async function reports(db: Transaction): Promise<HeardNode[]> {
  return (await db.all("SELECT name, report FROM nodes ORDER BY name")).map(toHeardNode);
}

export async function drainNode(db: Transaction, name: string): Promise<void> {
  if ((await db.run("UPDATE nodes SET is_draining = true WHERE name = $1", name)) === 0) throw refusals.noNode(name);
}
