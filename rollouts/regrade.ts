/**
 * Grades what a run kept again, without its agents: each rollout's work in a fresh sandbox, by its task as the task is now. A
 * new verdict is a new revision of the rollout's record; the last one counts.
 */
import { join } from "node:path";
import { asAlidadeError } from "../base/errors.ts";
import { openLayer } from "../base/files/layer.ts";
import { hashOfTask } from "../base/schema/ids.ts";
import type { MaskReason } from "../base/schema/reasons/left-out.ts";
import type { KeptLayer, RolloutRecord, Verdict } from "../base/schema/rollout.ts";
import type { Task } from "../base/schema/task.ts";
import type { Trajectory } from "../base/schema/trajectory.ts";
import type { GradeContext, Grader, OpenSampler, StepWork } from "../graders/index.ts";
import { asksModels, freshSandbox, grade, reopenWork } from "../graders/index.ts";
import { isShared } from "../graders/shared/index.ts";
import { Appender } from "../proxy/store/index.ts";
import { lossOf } from "../reconstruct/index.ts";
import type { SandboxBackend } from "../sandboxes/index.ts";
import type { NetworkRules } from "../sandboxes/network/index.ts";
import { rewardOf } from "./records/attempt-record.ts";
import { lockFolder } from "./records/folder-lock.ts";
import type { Journal } from "./records/journal.ts";
import { gradingKey, type NewVerdict, openRegradeJournal } from "./records/regrade-journal.ts";
import { rewriteTrajectories } from "./records/rewrite-trajectories.ts";
import { attemptKey, type OnDamage } from "./records/run-records.ts";
import { readWanted, whyNoTrajectory, workThrough } from "./records/wanted-attempts.ts";

export type RegradeSetup = {
  /** The run's folder. No other process may be at work in it. */
  path: string;
  /** Labels of the sandboxes, for the reaper. */
  run_id: string;
  owner: string;
  /** What the graders' sandboxes may reach. */
  rules: NetworkRules;
  /** By their `task_id`. */
  tasks: ReadonlyMap<string, Task>;
  backend: SandboxBackend;
  graders?: readonly Grader[];
  /** For graders that ask models; a sentence says why there is none. */
  openSampler: OpenSampler | string;
  /** Gradings at once. */
  atOnce: number;
  isWanted: (record: RolloutRecord) => boolean;
  onGraded: (graded: Regraded) => void;
  onDamage: OnDamage;
};

export type Regraded = Pick<RolloutRecord, "rollout_id" | "task_id" | "sample_index" | "attempt"> & {
  before: number | null;
  after: number | null;
  status: Verdict["status"];
  error: Verdict["error"];
  revision: number;
  /** The task is another one than when the rollout ran. */
  task_changed: boolean;
};

/** Has no new verdict, for the reason. */
export type NotRegraded = Pick<RolloutRecord, "rollout_id" | "task_id" | "sample_index" | "attempt"> & { reason: string };

export type Regrading = { regraded: Regraded[]; left: NotRegraded[] };

type NewlyGraded = { record: RolloutRecord; fresh: NewVerdict };

/**
 * The last attempt of every wanted rollout. Nothing of the run changes before all are graded; a signal that fires before
 * rejects, and the next call goes on from there.
 */
export async function regrade(setup: RegradeSetup, signal: AbortSignal): Promise<Regrading> {
  await using _lock = await lockFolder(setup.path);
  await using journal = await openRegradeJournal(setup.path);
  const wanted = await readWanted(setup.path, setup.isWanted, setup.onDamage);
  const left: NotRegraded[] = [];
  const found = new Map<string, NewlyGraded>();
  const leave = (record: RolloutRecord, reason: string) => left.push({ ...namesOf(record), reason });
  const one = async (record: RolloutRecord, trajectory: Trajectory): Promise<void> => {
    const fresh = await newVerdict(setup, journal, record, trajectory, signal);
    if (typeof fresh === "string") leave(record, fresh);
    else {
      found.set(attemptKey(record), { record, fresh });
      setup.onGraded(toRegraded({ record, fresh }));
    }
  };
  for (const record of await workThrough(setup, wanted, one, signal)) leave(record, whyNoTrajectory(record));
  await keep(setup.path, found);
  await journal.remove();
  return { regraded: [...found.values()].map(toRegraded), left };
}

/** A verdict of this work by this task, of an earlier process or made now; a sentence where there can be none. */
async function newVerdict(
  setup: RegradeSetup,
  journal: Journal<NewVerdict>,
  record: RolloutRecord,
  trajectory: Trajectory,
  signal: AbortSignal,
): Promise<NewVerdict | string> {
  const task = setup.tasks.get(record.task_id);
  const reason = whyNot(record, task, setup);
  if (reason !== null || task === undefined || record.work === null) return reason ?? "";
  const { rollout_id, attempt, work: kept } = record;
  const key = { rollout_id, attempt, work_sha256: kept.sha256, task_hash: hashOfTask(task) };
  const earlier = await journal.read(gradingKey(key));
  if (earlier !== null) return earlier;
  const { graders, backend } = setup;
  const context = { task, signal, isolation: backend.capabilities.isolation, ...(graders && { graders }) };
  const blobs = join(setup.path, "blobs");
  try {
    // Its work is the difference to what the set-up left then.
    const setUp = record.setup && (await openLayer(blobs, record.setup.sha256));
    const fresh = freshSandbox(context, setup.backend, { ...setup, setUp });
    const reopen = (sha256: string) => reopenWork(blobs, sha256, fresh, signal);
    const work = await reopen(kept.sha256);
    const leftAt = async (own: KeptLayer, after: KeptLayer | null): Promise<StepWork> => ({
      work: await reopen(own.sha256),
      ...(await readingsOf(blobs, record, after)),
    });
    const services = await readingsOf(blobs, record, record.services?.after ?? null);
    const steps = await Promise.all(record.steps.flatMap((step) => (step.work ? [leftAt(step.work, step.services)] : [])));
    await using sampler = await samplerFor(setup, task, rollout_id);
    const asked = { ...context, ...services, ...(sampler && { sampler }) };
    const verdict = await grade({ ...asked, work, steps, trajectory: { ...trajectory, reward: null, reward_components: [] }, fresh });
    signal.throwIfAborted();
    // The infrastructure measured nothing: the reward that is there stays.
    if (verdict.status === "infra_error" || verdict.status === "cancelled") return verdict.error?.message ?? verdict.status;
    const made = { ...key, verdict, time: Date.now() };
    await journal.add(made);
    return made;
  } catch (error) {
    signal.throwIfAborted();
    return asAlidadeError(error, "sandbox_error").message;
  }
}

/** `after`: null where nothing was read. */
async function readingsOf(blobs: string, { services }: RolloutRecord, after: KeptLayer | null): Promise<Pick<GradeContext, "services">> {
  if (services === null || after === null) return {};
  return { services: { before: await openLayer(blobs, services.before.sha256), after: await openLayer(blobs, after.sha256) } };
}

function whyNot(record: RolloutRecord, task: Task | undefined, { graders, openSampler }: RegradeSetup): string | null {
  if (record.state !== "done") return "it is not over";
  if (record.work === null) {
    const why = record.error?.message ?? record.verdict?.error?.message;
    return `its work was not kept${why === undefined ? "" : `: ${why}`}`;
  }
  if (task === undefined) return `its task ${record.task_id} is not among the run's tasks any more`;
  if (isShared(task)) return "it was graded in the agent's own sandbox, which is not kept: --grading fresh grades its work in a fresh one";
  return typeof openSampler === "string" && asksModels(task.grader, graders)
    ? `its grader ${task.grader.kind} asks a model, and ${openSampler}`
    : null;
}

async function samplerFor({ graders, openSampler }: RegradeSetup, { task_id, grader }: Task, rollout_id: string) {
  return typeof openSampler === "string" || !asksModels(grader, graders) ? undefined : openSampler(task_id, rollout_id);
}

function namesOf({ rollout_id, task_id, sample_index, attempt }: RolloutRecord) {
  return { rollout_id, task_id, sample_index, attempt };
}

function toRegraded({ record, fresh: { verdict, task_hash, time } }: NewlyGraded): Regraded {
  return {
    ...namesOf(record),
    before: record.verdict?.reward ?? null,
    after: verdict.reward,
    status: verdict.status,
    error: verdict.error,
    revision: isKept(record, time) ? record.revision : record.revision + 1,
    task_changed: task_hash !== record.task_hash,
  };
}

/** By a process that died between the records and the end. */
function isKept({ times }: RolloutRecord, time: number): boolean {
  return times.regraded === time;
}

/** Records first: a process that dies before the trajectories finds all verdicts in the journal and does both again. */
async function keep(path: string, found: Map<string, NewlyGraded>): Promise<void> {
  if (found.size === 0) return;
  const worths = new Map([...found].map(([key, one]) => [key, worthOf(one)]));
  {
    await using records = await Appender.open(join(path, "rollouts.jsonl"));
    for (const [key, { record, fresh }] of found) {
      if (isKept(record, fresh.time)) continue;
      const { mask_reason } = worths.get(key) ?? record;
      const times = { ...record.times, regraded: fresh.time };
      const next = { ...record, verdict: fresh.verdict, revision: record.revision + 1, mask_reason, times };
      await records.append(`${JSON.stringify(next satisfies RolloutRecord)}\n`);
    }
  }
  await rewriteTrajectories(path, (trajectory) => {
    const worth = worths.get(attemptKey(trajectory));
    if (worth === undefined) return trajectory;
    const others = trajectory.reward_components.filter(({ scope }) => scope !== "rollout");
    return { ...trajectory, ...worth, reward_components: [...worth.reward_components, ...others] };
  });
}

const slowEngine = "cut_by_the_clock_while_the_engine_was_slow" satisfies MaskReason;

/** What the rollout comes to with its new verdict. */
function worthOf({ record, fresh: { verdict } }: NewlyGraded) {
  const { stop_reason, error, summary } = record;
  // Where nothing was measured the record does not say whether the clock or the engine was at fault: then it stays out.
  const isUntold = stop_reason === "harness_timeout" && record.verdict?.reward === null;
  const run = stop_reason === null ? null : { stop_reason, slow_engine: isUntold || record.mask_reason === slowEngine };
  return { ...rewardOf(verdict), ...lossOf(run, verdict, error, summary?.turns ?? 0) };
}
