/** The record of a rollout that a service made, as far as its result tells it. */

import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { recordVersions } from "../../../base/schema/versions/record-versions.ts";
import { untrainedByAgent } from "../../../reconstruct/index.ts";
import type { ResultRow } from "../../../service/ledger/index.ts";

/**
 * Where its node gave no record: no call was recorded, it was cancelled, or the node is of an earlier version. What the result does
 * not say is unknown, and so null. `harness`: of the set; null: the service's own.
 */
export function recordOfResult(row: ResultRow, trajectory: Trajectory | null, harness: string | null): RolloutRecord {
  const { rollout_id, attempt, task_id, task_hash, group_id, group_size, index, session_id, stop_reason, error, mask_reason, times } = row;
  return {
    schema_version: recordVersions.rollout.now,
    rollout_id,
    attempt,
    task_id,
    task_hash,
    group_id,
    group_size,
    sample_index: index,
    harness: trajectory?.harness.name ?? harness ?? "the service's own",
    harness_version: trajectory?.harness.version ?? null,
    state: "done",
    session_id,
    stop_reason: stop_reason ?? error?.code ?? null,
    exit_code: null,
    verdict: null,
    revision: 1,
    error: error && { ...error, status: null },
    mask_reason,
    sandbox: null,
    setup: null,
    services: null,
    work: null,
    steps: [],
    network: null,
    forked_from: trajectory?.forked_from ?? null,
    replay: trajectory?.replay ?? null,
    resume: row.resume,
    user: row.user,
    times,
    output_tail: null,
    summary: trajectory && {
      turns: row.turns,
      sampled_tokens: row.sampled_tokens,
      ...(trajectory.fidelity.replayed_tokens !== undefined && { replayed_tokens: trajectory.fidelity.replayed_tokens }),
      trainable_tokens: row.trainable_tokens,
      untrained_by_agent: untrainedByAgent(trajectory),
      traces: trajectory.traces.length,
    },
  };
}
