/** The batch: tasks in, trajectories out. Every task gets `samples` rollouts, which are one group. */
import { AlidadeError, messageOf } from "../base/errors.ts";
import type { Branching } from "../base/schema/branching.ts";
import { hashOfTask } from "../base/schema/ids.ts";
import type { Sampling } from "../base/schema/message.ts";
import type { RolloutRecord } from "../base/schema/rollout.ts";
import type { SessionOptions } from "../base/schema/session-spec.ts";
import type { Task } from "../base/schema/task.ts";
import type { Trajectory } from "../base/schema/trajectory.ts";
import type { Harness } from "../harnesses/index.ts";
import { reconstruct } from "../reconstruct/index.ts";
import { acceptedTasks } from "./accepted/accepted-tasks.ts";
import { assertDistinct } from "./accepted/assert-distinct.ts";
import { noteLeftOut } from "./accepted/note-left-out.ts";
import { prepareTasks } from "./accepted/prepare-tasks.ts";
import { checkPublicNetwork } from "./accepted/public-network.ts";
import { assertForkable, assertUserServed } from "./accepted/takes-task.ts";
import type { BranchingPolicy } from "./branching/branching-policy.ts";
import { GroupTrees } from "./branching/group-trees.ts";
import { brokenBy } from "./line/broken-by.ts";
import { makePlans } from "./line/make-plans.ts";
import { packOf } from "./prepare.ts";
import { reapAtWork } from "./reap-meanwhile.ts";
import type { RunFolder } from "./records/run-folder.ts";
import { attemptKey, lastByTask, readRollouts } from "./records/run-records.ts";
import { toResumePlan } from "./replay/to-resume-plan.ts";
import type { ResumePlan, RolloutPlan } from "./rollout-plan.ts";
import type { RolloutOutcome } from "./run-rollout.ts";
import type { RunSetup } from "./run-setup.ts";

/** What is to be made. */
export type Batch = {
  tasks: Task[];
  /** Rollouts of each task. */
  samples: number;
  /** More attempts at each after a failure of the infrastructure. */
  retries: number;
  harness: Harness;
  session: Partial<SessionOptions>;
  /** Forks beside the samples; there are none where left out. */
  branching?: { options: Branching; policy: BranchingPolicy };
  /** Forced sampling by task and sample, instead of the session's. */
  samplingOf?: (task: Task, sampleIndex: number) => Sampling | Sampling[];
};

type BatchSetup = RunSetup & { folder: RunFolder };

/**
 * Runs what is not done yet in the folder and returns the last record of every rollout, in task order. A rollout that
 * fails is a record; its siblings go on. Throws only for what makes every rollout impossible. Once `drain` fires nothing more
 * begins, and what runs goes on to its end.
 */
export async function runTasks(
  setup: BatchSetup,
  batch: Batch,
  signal: AbortSignal,
  drain: AbortSignal = signal,
): Promise<RolloutRecord[]> {
  const { found } = setup.folder;
  for (const text of found.damaged) setup.onProgress({ type: "note", text });
  const begun = await readRollouts(setup.folder.path, alreadyReported);
  const hashes = unchangedHashes(batch, begun);
  const over = [...lastOf(begun).values()].filter((record) => isOver(record, setup)).length;
  setup.onProgress({ type: "planned", total: batch.tasks.length * sizeOfGroup(batch), over });
  const ready = { ...batch, tasks: await makeReady(setup, batch, drain) };
  await using _reaper = await reapAtWork(setup, signal, setup.folder.isResumed);
  const resumed = await resumePlans(setup, ready, hashes, lastOf(begun));
  const interrupted = begun.filter((record) => record.state !== "done");
  await closeInterrupted(setup, interrupted, resumed);
  await handOver(setup, lastOf(begun).values().filter(isStopped), resumed);
  const hasCalled = resumed.size > 0 || begun.some(({ summary }) => (summary?.turns ?? 0) > 0);
  const trees = treesOf(setup, ready);
  const forks = (await trees?.resumed(ready.tasks, lastOf(begun), (record) => isOver(record, setup))) ?? [];
  const plans = inTurn(forks, eachPlan(setup, ready, hashes, { last: lastOf(begun), resumed }));
  await makeAll(setup, { plans, trees, hasCalled }, { signal, drain });
  const last = await lastByTask(setup.folder.path);
  return batch.tasks.flatMap(({ task_id }) => last.get(task_id) ?? []);
}

/** The tasks that can be run. */
async function makeReady(setup: RunSetup, { tasks, harness, branching }: Batch, signal: AbortSignal): Promise<Task[]> {
  const { backend, onProgress, run_id, graders } = setup;
  const note = (text: string): void => onProgress({ type: "note", text });
  const onLeftOut = setup.onLeftOut ?? noteLeftOut(note);
  const unavailable = await backend.unavailable(signal);
  if (unavailable !== null) throw new AlidadeError("sandbox_unavailable", unavailable);
  const grant = setup.network ?? { allow_public: false };
  const accept = async (task: Task): Promise<void> => {
    checkPublicNetwork(task, grant, graders);
    await assertUserServed(task, setup.proxy.pool);
    if (branching) assertForkable(task, branching.options);
  };
  const allowed = await acceptedTasks(tasks, accept, onLeftOut);
  const space = async (stop: AbortSignal) => setup.disk?.assertFree(stop);
  const graded = graders && { graders };
  const ready = await prepareTasks(allowed, backend, { signal, progress: note, run_id, ...graded, space, onLeftOut });
  await packOf(setup, harness, signal);
  return ready;
}

/**
 * No more are begun once a rollout ended without a call before any made one: the others would end like it. `hasCalled`: an earlier
 * process made one.
 */
function makeAll(
  setup: RunSetup,
  what: { plans: Iterator<RolloutPlan, undefined>; trees: GroupTrees | null; hasCalled: boolean },
  stops: { signal: AbortSignal; drain: AbortSignal },
) {
  const { plans, trees } = what;
  let { hasCalled } = what;
  let isStopped = false;
  const endsAfter = ({ record: { error, summary } }: RolloutOutcome): boolean => {
    hasCalled ||= (summary?.turns ?? 0) > 0;
    if (hasCalled || isStopped || error?.code !== "no_call_seen") return false;
    isStopped = true;
    setup.onProgress({ type: "note", text: `THE RUN STOPS: ${error.message}. Mend the harness, then go on with --resume` });
    return true;
  };
  const moreAfter = async (plan: RolloutPlan, { record }: RolloutOutcome) => (await trees?.after(plan, record)) ?? [];
  return makePlans(setup, { plans, atOnce: setup.slots.atOnce, endsAfter, moreAfter }, stops.signal, stops.drain);
}

function treesOf(setup: RunSetup, { branching, samples, retries, harness }: Batch): GroupTrees | null {
  if (branching === undefined) return null;
  return new GroupTrees({ setup, samples, retries, harness, branching: branching.options, policy: branching.policy });
}

/** Rollouts of a group, its forks among them. */
function sizeOfGroup({ samples, branching }: Pick<Batch, "samples" | "branching">): number {
  return Math.max(samples, branching?.options.leaves ?? 0);
}

function* inTurn(first: readonly RolloutPlan[], then: Generator<RolloutPlan, undefined>): Generator<RolloutPlan, undefined> {
  yield* first;
  yield* then;
  return undefined;
}

/** The folder found it when it was opened. */
const alreadyReported = (): void => undefined;

/** Hashes by task. Throws `config_invalid` where one is another than when the run began. */
function unchangedHashes(batch: Batch, begun: RolloutRecord[]): Map<string, string> {
  assertDistinct(batch.tasks);
  const hashes = new Map(batch.tasks.map((task) => [task.task_id, hashOfTask(task)]));
  const changed = begun.find(({ task_id, task_hash }) => hashes.has(task_id) && hashes.get(task_id) !== task_hash);
  if (changed)
    throw new AlidadeError(
      "config_invalid",
      `task ${changed.task_id} is another one than when this run began: its rollouts would not be one group. Start a new run.`,
      { param: "tasks" },
    );
  return hashes;
}

/**
 * What is left to do: all of it in a new folder; in one of an interrupted run what is not done, as its next attempt. Ids
 * follow from run, task and index, so that a resumed run makes the same rollouts.
 */
function* eachPlan(
  setup: BatchSetup,
  batch: Batch,
  hashes: Map<string, string>,
  { last, resumed }: { last: Map<string, RolloutRecord>; resumed: Map<string, ResumePlan> },
): Generator<RolloutPlan, undefined> {
  const { tasks, samples, retries, harness, session, samplingOf } = batch;
  const { lastAttempts } = setup.folder.found;
  for (const task of tasks)
    for (let sample_index = 0; sample_index < samples; sample_index++) {
      const group_id = `${setup.run_id}-${task.task_id}`;
      const rollout_id = `${group_id}-${sample_index}`;
      const before = last.get(rollout_id);
      if (before && isOver(before, setup)) continue;
      const resume = resumed.get(rollout_id);
      yield {
        rollout_id,
        attempt: Math.max(before?.attempt ?? 0, lastAttempts.get(rollout_id) ?? 0) + 1,
        retries,
        task,
        task_hash: hashes.get(task.task_id) ?? "",
        group_id,
        group_size: sizeOfGroup(batch),
        sample_index,
        harness,
        session: samplingOf ? { ...session, sampling: samplingOf(task, sample_index) } : session,
        ...(resume && { resume }),
      };
    }
}

/**
 * Rollouts that the infrastructure broke, or whose harness made no call, are run again: a continued run assumes that this
 * is repaired. A trajectory is written before its record, so only damage takes it away.
 */
function isOver(record: RolloutRecord, { folder, guard }: BatchSetup): boolean {
  const { kept } = folder.found;
  // As long as it is set aside.
  if (record.error?.code === "rollout_set_aside") return guard?.aside.has(record.rollout_id) ?? true;
  if (record.state !== "done" || brokenBy(record) !== null || record.error?.code === "no_call_seen") return false;
  return record.summary === null || kept.has(attemptKey(record));
}

function lastOf(records: RolloutRecord[]): Map<string, RolloutRecord> {
  return new Map(records.map((record) => [record.rollout_id, record]));
}

/** How rollouts go on that ran when their process died or was stopped, by id. Those that had sampled nothing are left out. */
async function resumePlans(
  { proxy, resume = "replay" }: BatchSetup,
  { tasks, harness }: Batch,
  hashes: Map<string, string>,
  last: Map<string, RolloutRecord>,
): Promise<Map<string, ResumePlan>> {
  const byId = new Map(tasks.map((task) => [task.task_id, task]));
  const found = new Map<string, ResumePlan>();
  for (const record of last.values()) {
    const task = byId.get(record.task_id);
    // A fork begins behind its turn again: what comes before that is replayed in any case.
    if (record.forked_from !== null) continue;
    // Its next attempt may have died before it was on record.
    if (task === undefined || (record.state === "done" && record.stop_reason !== interruptedReason && !isStopped(record))) continue;
    const dead = { record, task, task_hash: hashes.get(record.task_id) ?? "", harness, wanted: resume };
    const plan = await toResumePlan(proxy.sessions.store, dead);
    if (plan !== null) found.set(record.rollout_id, plan);
  }
  return found;
}

const interruptedReason = "interrupted";

/** Its process was told to end in the middle of it. */
function isStopped(record: RolloutRecord): boolean {
  return record.state === "done" && brokenBy(record) === "cancelled";
}

/** Takes out trajectories of stopped attempts whose sessions continue. The next attempt's trajectory has all of their calls. */
async function handOver({ folder }: BatchSetup, stopped: Iterable<RolloutRecord>, resumed: ReadonlyMap<string, ResumePlan>): Promise<void> {
  const handed = [...stopped].filter(({ rollout_id }) => resumed.get(rollout_id)?.how === "replay");
  for (const record of handed) {
    const message = `the run was stopped in attempt ${attemptKey(record)}: the next attempt goes on with its session`;
    await folder.record({ ...record, error: { code: "cancelled", message, status: null }, summary: null });
  }
  // An earlier resume took the others out, and each call of `leaveOut` writes the whole file anew.
  await folder.leaveOut(new Set(handed.map(attemptKey).filter((key) => folder.found.kept.has(key))));
}

/**
 * Attempts of a dead process. A session that goes on is the next attempt's; of another one the record becomes a trajectory that
 * is not trained.
 */
async function closeInterrupted(setup: BatchSetup, records: RolloutRecord[], resumed: Map<string, ResumePlan>): Promise<void> {
  for (const record of records) {
    const goesOn = resumed.get(record.rollout_id)?.how === "replay";
    const next = goesOn ? ": the next attempt goes on with its session" : "";
    const error = { code: "cancelled", message: `the process that ran attempt ${attemptKey(record)} died${next}`, status: null };
    const trajectory = record.session_id === null || goesOn ? null : await interrupted(setup, record, record.session_id);
    if (trajectory) await setup.folder.keep(trajectory);
    const ended = { stop_reason: interruptedReason, mask_reason: interruptedReason };
    await setup.folder.record({ ...record, state: "done", error, ...ended });
  }
}

/** Null without a record. A damaged log is reported and loses its own trajectory only. */
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
