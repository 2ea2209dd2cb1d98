/**
 * Sets a task aside, in a run or on a node, when too many of its rollouts have no reward: rewards that are missing are no random
 * ones, and a broken task would take the machine's time from the others.
 */
import { type ErrorCode, sandboxFailures } from "../../base/errors.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";

/** Fewer say nothing about a task: a machine may stumble twice. */
const leastNulls = 3;

/** What may be the doing of a task's environment, where there was no grading. An engine that is down is no task's fault. */
const ofEnvironment: ReadonlySet<string> = new Set<ErrorCode>(["task_invalid", ...sandboxFailures]);

/** How long it looks back, and what becomes of a task that is set aside. */
export type WatchRules = {
  /** A task's latest rollouts that count. */
  latest: number;
  /** Whether a sandbox that failed counts: on one of several machines that may be the machine. */
  countsSandboxes: boolean;
  /** After so many milliseconds one rollout is made, and brings the task back where it is graded; null: never. */
  againMs: number | null;
  /** The end of the alarm: what happens now, and what to do. */
  advice: string;
};

export const watchOfRun: WatchRules = {
  latest: Number.POSITIVE_INFINITY,
  countsSandboxes: true,
  againMs: null,
  advice:
    "The run goes on without its other rollouts. Where its grader was out of reach, --resume makes them later; a mended task needs a new run",
};

const againMinutes = 10;

/** A service runs for days: what failed an hour ago says little of now, and a grader that was away comes back. */
export const watchOfService: WatchRules = {
  latest: 16,
  countsSandboxes: false,
  againMs: againMinutes * 60_000,
  advice: `This node ends its rollouts as failed (task_set_aside) and makes one every ${againMinutes} minutes: once that one is graded, the task is back`,
};

/** Above it more rewards are missing than are there. */
const usualNullShare = 0.5;

type WatchedTask = Pick<RolloutRecord, "task_id" | "task_hash">;
/** `ended`: for each rollout why it has no reward, or null. `asideSince`: null where it is not set aside. */
type Count = { ended: (string | null)[]; asideSince: number | null };

export class NullWatch {
  readonly #most: number;
  readonly #onAlarm: (text: string) => void;
  readonly #rules: WatchRules;
  readonly #now: () => number;
  /** By id and content: a mended task begins anew. */
  readonly #tasks = new Map<string, Count>();

  /** `most`: share of a task's ended rollouts, 0 to 1. */
  constructor(most: number = usualNullShare, onAlarm: (text: string) => void, rules: WatchRules = watchOfRun, now = Date.now) {
    this.#most = most;
    this.#onAlarm = onAlarm;
    this.#rules = rules;
    this.#now = now;
  }

  /** Counts a rollout that is over. */
  look(record: WatchedTask & Pick<RolloutRecord, "verdict" | "error">): void {
    const { task_id } = record;
    const count = this.#tasks.get(keyOf(record)) ?? { ended: [], asideSince: null };
    this.#tasks.set(keyOf(record), count);
    if (count.asideSince !== null) {
      if (record.verdict?.reward == null) return;
      this.#tasks.delete(keyOf(record));
      this.#onAlarm(`task ${task_id} is graded again, and is no longer set aside`);
      return;
    }
    count.ended.push(reasonOf(record, this.#rules));
    if (count.ended.length > this.#rules.latest) count.ended.shift();
    const nulls = count.ended.filter((reason) => reason !== null);
    if (nulls.length < leastNulls || nulls.length / count.ended.length <= this.#most) return;
    count.asideSince = this.#now();
    const listed = [...Map.groupBy(nulls, (code) => code)].map(([code, all]) => `${all.length} ${code}`).join(", ");
    this.#onAlarm(
      `ALARM: task ${task_id} is set aside: ${nulls.length} of ${count.ended.length} rollouts have no reward (${listed}), which is more than max_null_share ${this.#most}. ${this.#rules.advice}`,
    );
  }

  /** Whether its next rollout is not to be made. */
  isSetAside(task: WatchedTask): boolean {
    const count = this.#tasks.get(keyOf(task));
    if (count === undefined || count.asideSince === null) return false;
    const { againMs } = this.#rules;
    if (againMs === null || this.#now() - count.asideSince < againMs) return true;
    count.asideSince = this.#now();
    return false;
  }
}

function keyOf({ task_id, task_hash }: WatchedTask): string {
  return `${task_id} ${task_hash}`;
}

/** Why a rollout could not be graded; null where it was, or where that says nothing about its task. */
function reasonOf({ verdict, error }: Pick<RolloutRecord, "verdict" | "error">, { countsSandboxes }: WatchRules): string | null {
  if (verdict === null) return countsSandboxes && error !== null && ofEnvironment.has(error.code) ? error.code : null;
  if (verdict.reward !== null || verdict.status === "cancelled") return null;
  const code = verdict.error?.code ?? verdict.status;
  return countsSandboxes || !ofEnvironment.has(code) ? code : null;
}
