/**
 * Sets a task aside during a run when too many of its rollouts have no reward: rewards that are missing are no random
 * ones, and a broken task would take the machine's time from the others.
 */
import type { ErrorCode } from "../errors.ts";
import type { RolloutRecord } from "../schema/rollout.ts";

/** Fewer say nothing about a task: a machine may stumble twice. */
const leastNulls = 3;

/** What may be the doing of a task's environment, where there was no grading. An engine that is down is no task's fault. */
const ofEnvironment: ReadonlySet<string> = new Set<ErrorCode>([
  "task_invalid",
  "sandbox_unavailable",
  "sandbox_unhealthy",
  "sandbox_died",
  "sandbox_error",
  "image_pull_failed",
  "image_build_failed",
]);

type Count = { ended: number; reasons: Map<string, number>; isAside: boolean };

export class NullWatch {
  readonly #most: number;
  readonly #onAlarm: (text: string) => void;
  readonly #tasks = new Map<string, Count>();

  /** `most`: share of a task's ended rollouts, 0 to 1. */
  constructor(most: number, onAlarm: (text: string) => void) {
    this.#most = most;
    this.#onAlarm = onAlarm;
  }

  /** Counts a rollout that is over. */
  look(record: RolloutRecord): void {
    const { task_id } = record;
    const count = this.#tasks.get(task_id) ?? { ended: 0, reasons: new Map<string, number>(), isAside: false };
    this.#tasks.set(task_id, count);
    const reason = reasonOf(record);
    count.ended += 1;
    if (reason !== null) count.reasons.set(reason, (count.reasons.get(reason) ?? 0) + 1);
    const nulls = [...count.reasons.values()].reduce((sum, one) => sum + one, 0);
    if (count.isAside || nulls < leastNulls || nulls / count.ended <= this.#most) return;
    count.isAside = true;
    const listed = [...count.reasons].map(([code, times]) => `${times} ${code}`).join(", ");
    this.#onAlarm(
      `ALARM: task ${task_id} is set aside: ${nulls} of ${count.ended} rollouts have no reward (${listed}), which is more than max_null_share ${this.#most}. The run goes on without its other rollouts. Where its grader was out of reach, --resume makes them later; a mended task needs a new run`,
    );
  }

  isSetAside(task_id: string): boolean {
    return this.#tasks.get(task_id)?.isAside ?? false;
  }
}

/** Why a rollout could not be graded; null where it was, or where that says nothing about its task. */
function reasonOf({ verdict, error }: RolloutRecord): string | null {
  if (verdict === null) return error !== null && ofEnvironment.has(error.code) ? error.code : null;
  return verdict.reward === null && verdict.status !== "cancelled" ? (verdict.error?.code ?? verdict.status) : null;
}
