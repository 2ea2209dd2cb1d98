/** The service: tasks in, trajectories out. Every task gets `samples` rollouts, which are one group. */
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError, type ErrorCode, errorCodes, messageOf } from "../errors.ts";
import type { Harness } from "../harnesses/harness.ts";
import { containerPlatform, ensurePack, hostPlatform } from "../harnesses/pack.ts";
import { currentOwner } from "../host/owner.ts";
import type { HarnessProxy } from "../proxy/index.ts";
import { reconstruct } from "../reconstruct/index.ts";
import type { SandboxBackend } from "../sandboxes/sandbox.ts";
import { hashOf } from "../schema/ids.ts";
import type { Sampling } from "../schema/message.ts";
import type { RolloutRecord } from "../schema/rollout.ts";
import type { SessionOptions } from "../schema/session-spec.ts";
import type { Task } from "../schema/task.ts";
import type { Trajectory } from "../schema/trajectory.ts";
import { beforeNextAttempt } from "./before-next-attempt.ts";
import { attemptKey, type RunFolder, readRollouts } from "./run-folder.ts";
import { runRollout } from "./run-rollout.ts";
import type { ProgressEvent, RolloutPlan, RunSetup } from "./run-setup.ts";
import { type Concurrency, makeSlots } from "./slots.ts";

export type RunOptions = {
  run_id: string;
  tasks: Task[];
  samples: number;
  harness: Harness;
  backend: SandboxBackend;
  proxy: HarnessProxy;
  folder: RunFolder;
  /** What is chosen of each session; what is left out is its default. */
  session: Partial<SessionOptions>;
  samplingOf?: (task: Task, sampleIndex: number) => Sampling | Sampling[];
  concurrency: Concurrency;
  retries: number;
  /** The time between two attempts; by the clock where left out. */
  pause?: RunSetup["pause"];
  onProgress: (event: ProgressEvent) => void;
};

/**
 * Runs what is not done yet in the folder and returns the last record of every rollout, in task order. A rollout that
 * fails is a record; its siblings go on. Throws only for what makes every rollout impossible.
 */
export async function runTasks(options: RunOptions, signal: AbortSignal): Promise<RolloutRecord[]> {
  const plans = await plansOf(options);
  const setup = await setUp(options, signal);
  if (options.folder.isResumed) await clearAway(setup, signal);
  await closeInterrupted(setup, plans.interrupted);
  const ended = await Promise.allSettled(plans.open.map((plan) => untilDone(setup, plan, signal)));
  // What a container engine was still making when its client was killed is there by now.
  if (options.folder.isResumed && !signal.aborted) await clearAway(setup, signal);
  for (const end of ended) if (end.status === "rejected") throw end.reason;
  const latest = new Map<string, RolloutRecord>();
  for (const record of await readRollouts(options.folder.path)) latest.set(record.rollout_id, record);
  return options.tasks.flatMap((task) =>
    [...latest.values()].filter((record) => record.task_id === task.task_id).sort((a, b) => a.sample_index - b.sample_index),
  );
}

async function setUp(options: RunOptions, signal: AbortSignal): Promise<RunSetup> {
  const { harness, backend, onProgress } = options;
  const progress = (text: string): void => onProgress({ type: "note", text });
  const unavailable = await backend.unavailable(signal);
  if (unavailable !== null) throw new AlidadeError("sandbox_unavailable", unavailable);
  const environments = options.tasks.map(({ environment }) => environment);
  await backend.prepare(environments, { signal, progress });
  const platform = backend.capabilities.isolation === "container" ? containerPlatform() : hostPlatform();
  const pack = Object.keys(harness.packages).length === 0 ? null : await ensurePack(harness, { signal, progress, platform });
  return { pause: byTheClock, ...options, owner: await currentOwner(), pack, slots: makeSlots(options.concurrency) };
}

const byTheClock: RunSetup["pause"] = (milliseconds, signal) => sleep(milliseconds, undefined, { signal });

/** The next attempt follows, after a pause, while the infrastructure is to blame and attempts are left. */
async function untilDone(setup: RunSetup, plan: RolloutPlan, signal: AbortSignal): Promise<void> {
  for (let next = plan; !signal.aborted; next = { ...next, attempt: next.attempt + 1 }) {
    const { record } = await runRollout(setup, next, signal);
    setup.onProgress({ type: "done", record });
    const code = brokenBy(record);
    const failures = next.attempt - plan.attempt + 1;
    if (code === null || code === "cancelled" || failures > setup.retries) return;
    await beforeNextAttempt(setup, { ...next, attempt: next.attempt + 1 }, { code, failures }, signal);
  }
}

/** A bug of ours: it meets the next draw as well, and an agent that finds one must not get another draw by it. */
const notDrawnAgain: ReadonlySet<ErrorCode> = new Set(["internal"]);

/** What the infrastructure did to the attempt, in its sandbox or in its grading; null where it is done. */
function brokenBy({ error, verdict }: RolloutRecord): ErrorCode | null {
  const isUngraded = verdict?.status === "infra_error" || verdict?.status === "cancelled";
  const codes = [error?.code, isUngraded ? (verdict.error?.code ?? "cancelled") : undefined] as (ErrorCode | undefined)[];
  return codes.find((code) => code !== undefined && errorCodes[code] === "infrastructure" && !notDrawnAgain.has(code)) ?? null;
}

type Plans = { open: RolloutPlan[]; interrupted: RolloutRecord[] };

/** What is left to do: all of it in a new folder; in one of an interrupted run what is not done, as its next attempt. */
async function plansOf(options: RunOptions): Promise<Plans> {
  const twice = options.tasks.find(({ task_id }, index) => options.tasks.findIndex((task) => task.task_id === task_id) < index);
  if (twice)
    throw new AlidadeError(
      "task_invalid",
      `two tasks of this run have the task_id ${twice.task_id}: their rollouts could not be told apart`,
      {
        param: "task_id",
      },
    );
  const records = await readRollouts(options.folder.path);
  const lastOf = new Map<string, RolloutRecord>();
  for (const record of records) lastOf.set(record.rollout_id, record);
  const plans = options.tasks.flatMap((task) =>
    Array.from({ length: options.samples }, (_, sample_index) => planOf(options.run_id, task, sample_index)),
  );
  const open = plans.flatMap((plan): RolloutPlan[] => {
    const last = lastOf.get(plan.rollout_id);
    if (!last) return [plan];
    if (last.task_hash !== plan.task_hash)
      throw new AlidadeError(
        "config_invalid",
        `task ${plan.task.task_id} is another one than when this run began: its rollouts would not be one group. Start a new run.`,
        { param: "tasks" },
      );
    // What the infrastructure broke is not done: whoever goes on with a run has mended it.
    const over = last.state === "done" && brokenBy(last) === null;
    return over ? [] : [{ ...plan, attempt: last.attempt + 1 }];
  });
  return { open, interrupted: records.filter((record) => record.state !== "done") };
}

/** Ids follow from run, task and index, so that a resumed run makes the same rollouts. */
function planOf(runId: string, task: Task, sample_index: number): RolloutPlan {
  const group_id = `${runId}-${task.task_id}`;
  return { rollout_id: `${group_id}-${sample_index}`, attempt: 1, task, task_hash: hashOf(task).slice(0, 16), group_id, sample_index };
}

/** The sandboxes and processes of the process that died, whatever it had put on record: their calls would reach no proxy. */
async function clearAway({ backend, run_id, onProgress }: RunSetup, signal: AbortSignal): Promise<void> {
  const note = (text: string): void => onProgress({ type: "note", text });
  try {
    const { removed, failed } = await backend.reap({ run: run_id }, signal);
    for (const text of removed) note(`removed ${text}`);
    for (const text of failed) note(`could not remove ${text}`);
  } catch (error) {
    note(`what was left behind could not be removed: ${messageOf(error)}`);
  }
}

/** Attempts whose process died: what their sessions recorded is kept as a trajectory that nobody trains on. */
async function closeInterrupted(setup: RunSetup, records: RolloutRecord[]): Promise<void> {
  for (const record of records) {
    const error = { code: "cancelled", message: `the process that ran attempt ${attemptKey(record)} died`, status: null };
    const trajectory = record.session_id === null ? null : await interrupted(setup, record, record.session_id);
    if (trajectory) await setup.folder.keep(trajectory);
    await setup.folder.record({ ...record, state: "done", stop_reason: "interrupted", error, mask_reason: "interrupted" });
  }
}

/** Null where nothing was recorded. A damaged log is said and costs its own trajectory only. */
async function interrupted({ proxy, onProgress }: RunSetup, record: RolloutRecord, sessionId: string): Promise<Trajectory | null> {
  try {
    const entries = await proxy.sessions.store.read(sessionId);
    if (entries.length === 0) return null;
    return reconstruct(entries, {
      status: "failed",
      task: { id: record.task_id, hash: record.task_hash, data_source: null },
      group: { id: record.group_id, size: record.group_size, sample_index: record.sample_index },
      harness: { name: record.harness, version: record.harness_version, config_hash: null },
      stop_reason: "interrupted",
      in_loss: false,
      in_baseline: false,
      mask_reason: "interrupted",
    });
  } catch (error) {
    onProgress({ type: "note", text: `session ${sessionId}: ${messageOf(error)}` });
    return null;
  }
}
