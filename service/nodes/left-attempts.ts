/** Attempts that a node was at when its process died: the ledger hands their rollouts out again, and here are their sessions. */
import { stat } from "node:fs/promises";
import type { ErrorCode } from "../../base/errors.ts";
import { RolloutRecord } from "../../base/schema/rollout.ts";
import { readJsonLines } from "../../proxy/store/index.ts";
import { brokenBy } from "../../rollouts/line/index.ts";

/** By rollout. What is needed of the last record of each. */
export type LeftAttempts = Map<string, Pick<RolloutRecord, "session_id" | "harness" | "harness_version" | "task_hash" | "resume">>;

/** Some thousand attempts, read in half a second. The file grows for ever, and what ran lately stands at its end. */
const lastBytes = 32 * 1024 * 1024;

/**
 * `file`: the node's records, before it writes. A rollout that is over is among them: the ledger may not have heard of it. One that
 * the infrastructure broke is not, because a replay would go where it broke.
 */
export async function readLeftAttempts(file: string): Promise<LeftAttempts> {
  const { size } = await stat(file).catch(() => ({ size: 0 }));
  const from = { number: 1, offset: Math.max(0, size - lastBytes), bytes: 0 };
  const left: LeftAttempts = new Map();
  // The first line may be the end of one.
  const leaveOut = () => null;
  for await (const record of readJsonLines<RolloutRecord | null>(file, (value) => RolloutRecord.parse(value), leaveOut, from)) {
    if (record === null) continue;
    const { rollout_id, session_id, harness, harness_version, task_hash, resume } = record;
    if (leaves(brokenBy(record))) left.set(rollout_id, { session_id, harness, harness_version, task_hash, resume });
    else left.delete(rollout_id);
  }
  return left;
}

/** A node that was stopped has cancelled what ran. */
function leaves(broken: ErrorCode | null): boolean {
  return broken === null || broken === "cancelled";
}
