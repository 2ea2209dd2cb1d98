/** Nodes, their leases, and the attempts that they have. Each function runs inside a transaction, unless it says otherwise. */

import type { HeardNode, NodeReport } from "../control-state.ts";
import { type EnginePlaces, type EngineUse, grantPlaces } from "../engine-places.ts";
import { earlierOf, toClaim, toHeardNode, toNodePlaces, toNodeState } from "../from-rows.ts";
import { groupToolsOf, hasLater } from "../group-tools.ts";
import type { Lease } from "../ledger.ts";
import {
  type AttemptName,
  beatSeconds,
  type Claim,
  type ClaimedSets,
  leaseSeconds,
  type NodeSpec,
  type NodeState,
  type Orders,
} from "../ledger.ts";
import type { AttemptResult } from "../records.ts";
import { refusals } from "../refusals.ts";
import { type NodeLosing, nodeLost, nodesDied, setAside, withBlameless } from "../result-row.ts";
import type { Look } from "./connection/looks.ts";
import type { Transaction } from "./connection/postgres-database.ts";
import { endRollouts, rolloutsToEnd, writeEnds } from "./ends/end-rollouts.ts";
import { isToEnd } from "./ends/endings.ts";
import { lockGroupOf } from "./ends/stop-groups.ts";
import { joinTheLineOf } from "./join-the-line.ts";
import { freeParked, takeUp } from "./parked.ts";
import { lock, now, ownXid } from "./tables.ts";

/** `isNews`: others may be begun by it. `set`: of which it may have ordered others to end. */
type Finish = { end: "accepted" | "fenced"; isNews: boolean; set: string | null };

const leaseMs = leaseSeconds * 1000;

/** The answer to its claim is no longer on its way. */
const isOld = `since < ${now} - ${leaseMs}`;

/** Back into the line, before what was not claimed yet. */
const again = `state = 'queued', is_again = true, node = NULL, since = ${now}`;

/** Three beats in which neither a node nor a service reached it: the database was away, and nodes could not renew their leases. */
const awayMs = 3 * beatSeconds * 1000;

/** One of all beats and looks says so every few seconds: a row that each of them wrote would have them wait for each other. */
const noteEveryMs = (beatSeconds * 1000) / 2;

/** The database is there; `came_back` says since when, where it was not. A service that is away says nothing about it. */
const noteReached = `UPDATE watch SET came_back = CASE WHEN ${now} - looked > ${awayMs} THEN ${now} ELSE came_back END, looked = ${now}
     WHERE ctid = (SELECT ctid FROM watch WHERE looked < ${now} - ${noteEveryMs} FOR UPDATE SKIP LOCKED)`;

/** `lost`: how many attempts an earlier life of the node had. */
export async function join(db: Transaction, { name, slots, blameless = [] }: NodeSpec): Promise<{ lease: Lease; lost: number }> {
  const row = await db.get(
    `INSERT INTO nodes (name, epoch, slots, until) VALUES ($1, nextval('epochs'), $2, ${now} + ${leaseMs})
     ON CONFLICT (name) DO UPDATE SET epoch = excluded.epoch, slots = excluded.slots, until = excluded.until, is_draining = false,
       report = NULL, engines = NULL
     RETURNING epoch`,
    name,
    slots,
  );
  const lost = await loseAll(db, name, { by: "replaced", blameless });
  return { lease: { node: name, epoch: Number(row?.epoch), seconds: leaseSeconds }, lost };
}

export async function leave(db: Transaction, lease: Lease): Promise<void> {
  if ((await db.run("DELETE FROM nodes WHERE name = $1 AND epoch = $2", lease.node, lease.epoch)) === 0) return;
  const running = "node = $1 AND state = 'running'";
  await joinTheLineOf(db, running, lease.node);
  await db.run(`UPDATE rollouts SET ${again} WHERE ${running}`, lease.node);
  await freeParked(db, lease.node);
}

/** One statement. `unknown`: rollouts that are the node's for long and which it does not know, for the answer to its claim was lost. */
export async function beat(
  db: Transaction,
  lease: Lease,
  running: readonly AttemptName[],
): Promise<{ orders: Orders; unknown: readonly string[] }> {
  const rows = await db.all(
    `WITH reached AS (${noteReached}), renewed AS (
       UPDATE nodes SET until = ${now} + ${leaseMs} WHERE name = $1 AND epoch = $2 RETURNING is_draining
     )
     SELECT is_draining, id, attempt, ${isOld} AS is_old FROM renewed LEFT JOIN rollouts ON node = $1 AND state = 'running' AND NOT ${isToEnd}`,
    lease.node,
    lease.epoch,
  );
  const [node] = rows;
  if (node === undefined) return { orders: { isLost: true, isDraining: false, stop: [...running] }, unknown: [] };
  const attempts = new Map(rows.map(({ id, attempt }) => [String(id), Number(attempt)]));
  const known = new Set(running.map(({ rollout_id }) => rollout_id));
  const unknown = rows.filter(({ id, is_old }) => is_old === true && !known.has(String(id))).map(({ id }) => String(id));
  const stop = running.filter(({ rollout_id, attempt }) => attempts.get(rollout_id) !== attempt);
  return { orders: { isLost: false, isDraining: node.is_draining === true, stop }, unknown };
}

export async function queueUnknown(db: Transaction, { node }: Lease, unknown: readonly string[]): Promise<void> {
  const lost = `id = ANY ($1) AND node = $2 AND state = 'running' AND ${isOld}`;
  await joinTheLineOf(db, lost, unknown, node);
  await db.run(`UPDATE rollouts SET ${again} WHERE ${lost}`, unknown, node);
}

/** Each statement stands by itself, so it also runs outside of a transaction. What fails behind a claim is claimed again (`queueUnknown`). */
export async function claim(db: Transaction, { node, epoch }: Lease, free: number, from: ClaimedSets): Promise<Claim[]> {
  const claims: Claim[] = [];
  for (const row of await db.all("SELECT * FROM claim($1, $2, $3, $4)", node, epoch, free, from))
    claims.push(await takeUp(db, toClaim(row)));
  return claims;
}

/** Its attempts before the next one, with the one that ran. `code`: in SQL. */
const withBroken = (code: string): string =>
  `(coalesce(earlier, '[]')::jsonb || jsonb_build_object('attempt', attempt, 'node', node, 'code', ${code}))::text`;

export async function release(db: Transaction, { rollout_id, attempt }: AttemptName, broken: string | null): Promise<"queued" | "fenced"> {
  const why =
    broken === null ? "" : `, failures = failures + 1, shuns = coalesce(shuns, '|') || node || '|', earlier = ${withBroken("$3::text")}`;
  const current = `id = $1 AND attempt = $2 AND state = 'running' AND NOT ${isToEnd}`;
  await joinTheLineOf(db, current, rollout_id, attempt);
  const changed = await db.run(
    `UPDATE rollouts SET ${again}${why} WHERE ${current}`,
    rollout_id,
    attempt,
    ...(broken === null ? [] : [broken]),
  );
  return changed === 1 ? "queued" : "fenced";
}

/** Writes the end by one statement, outside of a transaction. null: it may end others of its group too, so the end needs one. */
export async function finishAlone(db: Transaction, { rollout_id, attempt }: AttemptName, result: AttemptResult): Promise<Finish | null> {
  const [rollout] = await rolloutsToEnd(db, [rollout_id], attempt);
  if (rollout === undefined) return { end: "fenced", isNews: false, set: null };
  if (hasLater(rollout.spec) || groupToolsOf(rollout.spec).enough !== null) return null;
  const [group] = await writeEnds(db, [rollout], { attempt, state: result.state, result });
  const isNews = group?.is_whole === true && rollout.spec.max_version_lag !== null;
  return { end: group === undefined ? "fenced" : "accepted", isNews, set: null };
}

/** Inside a transaction. */
export async function finish(db: Transaction, { rollout_id, attempt }: AttemptName, result: AttemptResult): Promise<Finish> {
  await lockGroupOf(db, rollout_id);
  const ended = await endRollouts(db, { ids: [rollout_id], attempt, state: result.state, result });
  const group = await db.get(
    `SELECT groups.set_id, whole_xid = ${ownXid} AS is_whole, EXISTS (
       SELECT FROM rollouts AS mates WHERE mates.set_id = groups.set_id AND mates.group_key = key AND mates.state IN ('queued', 'held')
     ) AS is_open FROM rollouts JOIN groups ON groups.set_id = rollouts.set_id AND groups.key = group_key WHERE rollouts.id = $1`,
    rollout_id,
  );
  const isNews = group?.is_whole === true || group?.is_open === true;
  return { end: ended === 1 ? "accepted" : "fenced", isNews, set: group === undefined ? null : String(group.set_id) };
}

/** Inside a transaction. */
export async function endAside(db: Transaction, rollout: string, why: string): Promise<boolean> {
  await lockGroupOf(db, rollout);
  const open = await db.all(`SELECT id FROM rollouts WHERE id = $1 AND state <> 'done' AND NOT ${isToEnd} FOR UPDATE`, rollout);
  const ids = open.map(({ id }) => String(id));
  return (await endRollouts(db, { ids, attempt: null, state: "failed", result: setAside(why) })) > 0;
}

/**
 * Puts the node's rollouts back into the line, at their old places. Marks the attempts that the node calls `blameless`. Then ends
 * the rollouts under which too many nodes died. The caller has locked the node.
 */
async function loseAll(db: Transaction, node: string, { by, blameless = [] }: NodeLosing): Promise<number> {
  const held = await db.all("SELECT id FROM rollouts WHERE node = $1 AND state = 'running' ORDER BY place FOR UPDATE", node);
  const ids = held.map(({ id }) => String(id));
  await joinTheLineOf(db, "id = ANY ($1)", ids);
  await db.run(`UPDATE rollouts SET ${again}, lost = lost + 1, earlier = ${withBroken("$2::text")} WHERE id = ANY ($1)`, ids, nodeLost);
  await freeParked(db, node);
  await clear(db, node, blameless);
  for (const rollout of await db.all("SELECT id, lost, earlier FROM rollouts WHERE id = ANY ($1) ORDER BY place", ids)) {
    const result = nodesDied(Number(rollout.lost), earlierOf(rollout), by);
    if (result !== null) await endRollouts(db, { ids: [String(rollout.id)], attempt: null, state: "failed", result });
  }
  return held.length;
}

/** Records which lost attempts the node does not blame. */
async function clear(db: Transaction, node: string, blameless: readonly AttemptName[]): Promise<void> {
  const ids = [...new Set(blameless.map(({ rollout_id }) => rollout_id))];
  if (ids.length === 0) return;
  const open = await db.all("SELECT id, earlier FROM rollouts WHERE id = ANY ($1) AND state <> 'done' ORDER BY place FOR UPDATE", ids);
  for (const rollout of open) {
    let earlier = earlierOf(rollout);
    let cleared = 0;
    for (const name of blameless.filter(({ rollout_id }) => rollout_id === rollout.id)) {
      const next = withBlameless(earlier, node, name);
      if (next === null) continue;
      earlier = next;
      cleared++;
    }
    if (cleared > 0)
      await db.run(
        "UPDATE rollouts SET lost = lost - $2, earlier = $3 WHERE id = $1",
        String(rollout.id),
        cleared,
        JSON.stringify(earlier),
      );
  }
}

export async function expire(db: Transaction): Promise<string[]> {
  await db.run(noteReached);
  // Waits for a beat that is writing it: its word is that the database came back just now.
  const watch = await db.get(`SELECT came_back + ${leaseMs} > ${now} AS is_fresh FROM watch FOR SHARE`);
  if (watch?.is_fresh === true) return [];
  const dead = await db.all(`SELECT name FROM nodes WHERE until < ${now} ORDER BY name FOR UPDATE SKIP LOCKED`);
  const names = dead.map(({ name }) => String(name));
  for (const name of names) {
    await loseAll(db, name, { by: "silent" });
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

/** The mark is another one after each report and each order, and when a node comes or goes. */
export async function lookForAnswers(db: Transaction, mark: string | null): Promise<Look> {
  const found = await db.get(
    `SELECT md5(concat((SELECT value FROM facts WHERE name = 'control'), string_agg(concat(name, ' ', epoch, ' ', report), ',' ORDER BY name)))
     AS mark FROM nodes`,
  );
  const next = String(found?.mark);
  return { mark: next, changed: next === mark ? new Set() : null };
}

export async function drainNode(db: Transaction, name: string): Promise<void> {
  if ((await db.run("UPDATE nodes SET is_draining = true WHERE name = $1", name)) === 0) throw refusals.noNode(name);
}

/** Places at engines. One node at a time, so that none is given what another one was given just now. */
export async function grant(db: Transaction, { node, epoch }: Lease, uses: readonly EngineUse[]): Promise<EnginePlaces[]> {
  await lock(db, "places");
  const others = await db.all("SELECT name, engines FROM nodes WHERE name <> $1 AND engines IS NOT NULL", node);
  const granted = grantPlaces(node, uses, others.map(toNodePlaces));
  const kept = await db.run("UPDATE nodes SET engines = $3 WHERE name = $1 AND epoch = $2", node, epoch, JSON.stringify(granted));
  return kept === 1 ? granted : [];
}
