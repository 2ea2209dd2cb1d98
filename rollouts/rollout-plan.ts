/** One rollout to be made, with all that is its own: what it shares with others on this machine is the set-up's. */

import type { ParkedFrom } from "../base/schema/rollout.ts";
import type { ForkedFrom, SessionOptions } from "../base/schema/session-spec.ts";
import type { Task } from "../base/schema/task.ts";
import type { Harness } from "../harnesses/index.ts";
import type { Replay } from "../proxy/index.ts";

export type RolloutPlan = {
  /** The set that it is of; that of a run is the run, where left out. */
  set_id?: string;
  rollout_id: string;
  /** The first one to make, 1-based; a rollout that was begun before goes on with its next. */
  attempt: number;
  /** Attempts after a failure of the infrastructure, beside that one. */
  retries: number;
  task: Task;
  task_hash: string;
  group_id: string;
  group_size: number;
  sample_index: number;
  harness: Harness;
  /** What is chosen of its session; what is left out is its default. */
  session: Partial<SessionOptions>;
  /** Its first turns are answered from the record of another rollout. */
  replay?: ReplayPlan;
  /** The process that made the attempt before it died. */
  resume?: ResumePlan;
};

/**
 * replay: the attempt goes on with the session of the one before. again: it begins anew. `again_tokens`: sampled by finished calls
 * of earlier attempts that were begun anew, and `why` the last one was. `parked_from`: the rollout of an earlier group that the session
 * began as.
 */
export type ResumePlan = { again_tokens: number } & (
  | { how: "replay"; session_id: string; sampled_tokens: number; why: string | null; parked_from?: ParkedFrom }
  | { how: "again"; why: string }
);

export type ReplayPlan = {
  forked_from: ForkedFrom;
  /** The harness is told of this model and context, as when it was recorded. */
  model: string;
  context_window: number | null;
  /** Made anew for each attempt. */
  open(): Replay;
};
