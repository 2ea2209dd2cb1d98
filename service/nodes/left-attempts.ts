/** Attempts that a node was at when its process died: the ledger hands their rollouts out again, and here are their sessions. */
import type { ErrorCode } from "../../base/errors.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { latestRecords } from "../../rollouts/index.ts";
import { brokenBy } from "../../rollouts/line/index.ts";

/** What is needed of its last record. */
export type LeftAttempt = Pick<RolloutRecord, "attempt" | "session_id" | "harness" | "harness_version" | "task_hash" | "resume">;

/** By rollout. */
export type LeftAttempts = Map<string, LeftAttempt>;

/**
 * `file`: the node's records, before it writes. A rollout that is over is among them: the ledger may not have heard of it. One that
 * the infrastructure broke is not, because a replay would go where it broke.
 */
export async function readLeftAttempts(file: string): Promise<LeftAttempts> {
  const left: LeftAttempts = new Map();
  for await (const record of latestRecords(file)) {
    const { rollout_id, attempt, session_id, harness, harness_version, task_hash, resume } = record;
    if (leaves(brokenBy(record))) left.set(rollout_id, { attempt, session_id, harness, harness_version, task_hash, resume });
    else left.delete(rollout_id);
  }
  return left;
}

/** A node that was stopped has cancelled what ran. */
function leaves(broken: ErrorCode | null): boolean {
  return broken === null || broken === "cancelled";
}
