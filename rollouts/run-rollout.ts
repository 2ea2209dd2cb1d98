/**
 * One attempt at a rollout, read from top to bottom: lease a sandbox, open a session, run the harness, seal the
 * session, take the work out, reconstruct, grade elsewhere, store. A failure at any step is a record, not an exception,
 * and reconstruction runs whatever happened before.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError, asAlidadeError, messageOf } from "../errors.ts";
import type { WorkLayer } from "../files/layer.ts";
import { freshSandbox, grade, graderSpec, noOutput } from "../graders/grade.ts";
import type { GradeContext } from "../graders/grader.ts";
import { asksModels } from "../graders/index.ts";
import { lendSandbox } from "../graders/shared/lend-sandbox.ts";
import { isShared } from "../graders/shared/place-to-grade.ts";
import { takeWork } from "../graders/work.ts";
import type { Pack } from "../harnesses/pack.ts";
import { type Session, toErrorRecord } from "../proxy/index.ts";
import { lossOf, reconstruction, type TrajectoryFacts, untrainedByAgent } from "../reconstruct/index.ts";
import { usesNetwork } from "../sandboxes/check-spec.ts";
import { engineAddresses } from "../sandboxes/network/engine-addresses.ts";
import { type NetworkRules, plainRules } from "../sandboxes/network/open-network.ts";
import type { SandboxFacts } from "../sandboxes/sandbox.ts";
import type { ExpectedSandbox } from "../sandboxes/warm-pool.ts";
import type { RolloutRecord, Verdict } from "../schema/rollout.ts";
import type { ErrorRecord } from "../schema/session-log.ts";
import type { Trajectory } from "../schema/trajectory.ts";
import { isFull } from "../store/index.ts";
import { samplersOf } from "./open-sampler.ts";
import { agentSpec, type PreparedRollout, packOf, prepare } from "./prepare.ts";
import type { RolloutPlan } from "./rollout-plan.ts";
import { type HarnessRun, runHarness } from "./run-harness.ts";
import type { RunSetup } from "./run-setup.ts";
import { runSteps, type StepRun } from "./steps/run-steps.ts";

/** What is known of an attempt so far: it grows from step to step and becomes the record. */
type RunningAttempt = {
  session: Session | null;
  sandbox: SandboxFacts | null;
  pack: Pack | null;
  run: HarnessRun | null;
  /** The session from its log, once it has ended; the rollout's result is added when it is known. */
  told: ReturnType<typeof reconstruction> | null;
  /** What the task's set-up left; null where it has none, or did not end. */
  setUp: WorkLayer | null;
  work: WorkLayer | null;
  /** Steps of its task that the agent ended. */
  steps: StepRun[];
  /** The grader's sandbox: a warm pool makes it while the work is taken out. */
  grading: ExpectedSandbox | undefined;
  verdict: Verdict | null;
  error: ErrorRecord | null;
  /** With the log of what its sandboxes asked for. */
  rules: NetworkRules;
  times: Record<string, number>;
};

/** How an attempt ended; of a rollout its last one. */
export type RolloutOutcome = { record: RolloutRecord; trajectory: Trajectory | null };

export async function runRollout(setup: RunSetup, plan: RolloutPlan, signal: AbortSignal): Promise<RolloutOutcome> {
  const attempt: RunningAttempt = {
    session: null,
    sandbox: null,
    pack: null,
    run: null,
    told: null,
    setUp: null,
    work: null,
    steps: [],
    grading: undefined,
    verdict: null,
    error: null,
    rules: networkRules(setup),
    times: { queued: Date.now() },
  };
  try {
    await setup.slots.rollout.run(signal, () => runAndGrade(setup, plan, attempt, signal));
  } catch (error) {
    const failure = signal.aborted
      ? new AlidadeError("cancelled", "the run was stopped")
      : asAlidadeError(firstFailure(error), "sandbox_error");
    attempt.error = toErrorRecord(failure);
    // The agent had this sandbox, so its state, broken or not, is the agent's result.
    if (attempt.session && failure.owner === "policy") attempt.verdict = noOutput(plan.task, failure);
  } finally {
    attempt.grading?.[Symbol.dispose]();
  }
  attempt.times.done = Date.now();
  return conclude(setup, plan, attempt, signal);
}

function networkRules({ proxy, network }: RunSetup): NetworkRules {
  const never = engineAddresses(() => proxy.pool.slots.map(({ engine }) => engine.baseUrl));
  return {
    ...plainRules(),
    never,
    ...(network?.network && { network: network.network }),
    ...(network?.bounds && { bounds: network.bounds }),
  };
}

async function runAndGrade(setup: RunSetup, plan: RolloutPlan, attempt: RunningAttempt, signal: AbortSignal): Promise<void> {
  using expected = await expectAgent(setup, plan, signal);
  const work = await setup.slots.sandbox.run(signal, () => inSandbox(setup, plan, attempt, expected, signal));
  await readLog(setup, attempt);
  if (work === null) return;
  attempt.work = work;
  if (attempt.verdict === null) await gradeWork(setup, plan, attempt, work, {}, signal);
}

async function gradeWork(
  setup: RunSetup,
  plan: RolloutPlan,
  attempt: RunningAttempt,
  work: WorkLayer,
  place: Pick<GradeContext, "lend">,
  signal: AbortSignal,
): Promise<void> {
  await setup.slots.post.run(signal, async () => {
    enter(setup, plan, attempt, "post");
    const { graders } = setup;
    const openSampler = samplersOf(setup.proxy, (text) => setup.onProgress({ type: "note", text }));
    await using sampler = asksModels(plan.task.grader, graders) ? await openSampler(plan.task.task_id, plan.rollout_id) : undefined;
    const trajectory = attempt.told?.(around(plan, attempt));
    attempt.verdict = await grade({
      ...gradingContext(setup, plan, attempt, signal),
      ...place,
      work,
      ...(trajectory && { trajectory }),
      ...(sampler && { sampler }),
    });
  });
}

function gradingContext(setup: RunSetup, plan: RolloutPlan, attempt: RunningAttempt, signal: AbortSignal): Omit<GradeContext, "work"> {
  const { graders, backend, run_id, owner } = setup;
  const context = { task: plan.task, signal, isolation: backend.capabilities.isolation, ...(graders && { graders }) };
  const whose = { run_id, owner, rules: attempt.rules, setUp: attempt.setUp };
  return { ...context, fresh: freshSandbox(context, attempt.grading ?? backend, whose) };
}

/** Where a release failed as well, what failed before it is what happened. */
function firstFailure(error: unknown): unknown {
  return error instanceof SuppressedError ? firstFailure(error.suppressed) : error;
}

/** While the rollout waits for its places, a warm pool may make its sandbox. */
async function expectAgent(setup: RunSetup, plan: RolloutPlan, signal: AbortSignal): Promise<ExpectedSandbox | undefined> {
  return setup.warm?.expect(await agentSpec(setup, plan, await packOf(setup, plan.harness, signal)), "later");
}

/** INIT and RUN share a sandbox; what the agent left is out of it before it goes. */
async function inSandbox(
  setup: RunSetup,
  plan: RolloutPlan,
  attempt: RunningAttempt,
  expected: ExpectedSandbox | undefined,
  signal: AbortSignal,
): Promise<WorkLayer | null> {
  await using prepared = await setup.slots.init.run(signal, async () => {
    enter(setup, plan, attempt, "init");
    return whenThereIsSpace(setup, signal, async () => {
      await setup.disk?.assertFree(signal);
      return prepare(setup, plan, attempt.rules, signal, expected);
    });
  });
  attempt.session = prepared.session;
  attempt.sandbox = prepared.sandbox.facts;
  attempt.pack = prepared.pack;
  attempt.setUp = prepared.setUp;
  attempt.times.ready = Date.now();
  const work = await setup.slots.run.run(signal, () => atWork(setup, plan, attempt, prepared, signal));
  attempt.times.ran = Date.now();
  return work;
}

async function atWork(
  setup: RunSetup,
  plan: RolloutPlan,
  attempt: RunningAttempt,
  prepared: PreparedRollout,
  signal: AbortSignal,
): Promise<WorkLayer | null> {
  enter(setup, plan, attempt, "run");
  await whenThereIsSpace(setup, signal, () => setup.folder.record(recordOf(plan, attempt, "run", null)));
  if (plan.task.steps) return inSteps(setup, plan, attempt, prepared, signal);
  const run = await runHarness(setup, plan, prepared, signal);
  attempt.run = run;
  const shared = isShared(plan.task);
  if (!run.infrastructure && !shared) attempt.grading = setup.warm?.expect(graderSpec(plan.task, setup));
  await whenThereIsSpace(setup, signal, () => prepared.session.seal(run.stop_reason));
  attempt.error = attempt.run.infrastructure ?? attempt.run.failure;
  // What a harness leaves without a call is not the policy's work: there is nothing to grade.
  if (run.infrastructure || prepared.session.callCount === 0) return null;
  if (shared) return await gradedThere(setup, plan, attempt, prepared, signal);
  return await whenThereIsSpace(setup, signal, () => leftBehind(setup, prepared, plan, signal));
}

/** Step after step, each graded before the next one begins. */
async function inSteps(
  setup: RunSetup,
  plan: RolloutPlan,
  attempt: RunningAttempt,
  prepared: PreparedRollout,
  signal: AbortSignal,
): Promise<WorkLayer | null> {
  const context = gradingContext(setup, plan, attempt, signal);
  const take = () => whenThereIsSpace(setup, signal, () => workOf(setup, prepared, plan, signal));
  const { steps, verdict, failure } = await runSteps({ setup, plan, prepared, context, take }, signal);
  attempt.steps = steps;
  attempt.verdict = verdict;
  // An engine that was too slow for one step was so for the rollout.
  const run = steps.find((step) => step.run.slow_engine)?.run ?? steps.at(-1)?.run ?? null;
  attempt.run = failure === null ? run : null;
  attempt.error = failure ? toErrorRecord(failure) : (run?.infrastructure ?? run?.failure ?? null);
  await whenThereIsSpace(setup, signal, () => prepared.session.seal(attempt.run?.stop_reason ?? failure?.code ?? "exited"));
  return steps.at(-1)?.work ?? null;
}

async function leftBehind(setup: RunSetup, prepared: PreparedRollout, plan: RolloutPlan, signal: AbortSignal): Promise<WorkLayer> {
  await prepared.sandbox.freeze("reads");
  return workOf(setup, prepared, plan, signal);
}

/** Takes the work out of the agent's sandbox, for the record, and grades it there. */
async function gradedThere(
  setup: RunSetup,
  plan: RolloutPlan,
  attempt: RunningAttempt,
  prepared: PreparedRollout,
  signal: AbortSignal,
): Promise<WorkLayer> {
  const { sandbox, session, network } = prepared;
  await sandbox.freeze();
  const work = await whenThereIsSpace(setup, signal, () => workOf(setup, prepared, plan, signal));
  await network[Symbol.asyncDispose]();
  await whenThereIsSpace(setup, signal, () => setup.proxy.sessions.close(session, "the rollout is over"));
  await readLog(setup, attempt);
  await gradeWork(setup, plan, attempt, work, { lend: lendSandbox(sandbox, plan.task, attempt.rules) }, signal);
  return work;
}

function workOf({ folder }: RunSetup, { sandbox, delivered, setUp }: PreparedRollout, { task }: RolloutPlan, signal: AbortSignal) {
  return takeWork(sandbox, task, delivered, folder.blobs, signal, setUp);
}

async function conclude(setup: RunSetup, plan: RolloutPlan, attempt: RunningAttempt, signal: AbortSignal): Promise<RolloutOutcome> {
  const { session } = attempt;
  if (session) await whenThereIsSpace(setup, signal, () => setup.proxy.sessions.close(session, "the rollout is over"));
  await readLog(setup, attempt);
  const trajectory = attempt.told?.({ ...around(plan, attempt), ...worthOf(attempt) }) ?? null;
  const record = recordOf(plan, attempt, "done", trajectory);
  await whenThereIsSpace(setup, signal, () => (trajectory ? setup.folder.keep(trajectory) : Promise.resolve()));
  await whenThereIsSpace(setup, signal, () => setup.folder.record(record));
  return { record, trajectory };
}

/**
 * On a full disk a rollout does not begin, and an outcome is held in memory until it can be written: a rollout's GPU time
 * is worth the wait. A run that is stopped meanwhile throws `store_full`; what was not written is then made again by
 * `--resume`.
 */
async function whenThereIsSpace<T>(setup: RunSetup, signal: AbortSignal, write: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      if (!isFull(error) || signal.aborted) throw error;
      setup.onProgress({ type: "note", text: `${messageOf(error)}; trying again every ${fullDiskRetryMs / 1000} s` });
      await sleep(fullDiskRetryMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

const fullDiskRetryMs = 2_000;

/** Once the session has ended. A log that cannot be read is the attempt's error. */
async function readLog({ proxy }: RunSetup, attempt: RunningAttempt): Promise<void> {
  if (attempt.told || !attempt.session) return;
  try {
    attempt.told = reconstruction(await proxy.sessions.store.read(attempt.session.id));
  } catch (error) {
    attempt.error ??= toErrorRecord(error);
  }
}

/** What a log does not know of the rollout around it. */
function around(plan: RolloutPlan, attempt: RunningAttempt): TrajectoryFacts {
  return {
    task: { id: plan.task.task_id, hash: plan.task_hash, data_source: plan.task.data_source },
    group: { id: plan.group_id, size: plan.group_size, sample_index: plan.sample_index },
    harness: { name: plan.harness.name, version: plan.harness.version, config_hash: attempt.pack?.hash ?? null },
    stop_reason: attempt.run?.stop_reason ?? attempt.error?.code ?? null,
    reward: null,
  };
}

/** What it came to. */
function worthOf({ run, verdict, error, session }: RunningAttempt): TrajectoryFacts {
  return { ...rewardOf(verdict), ...lossOf(run, verdict, error, session?.callCount ?? 0) };
}

/** A verdict as a trajectory tells it. */
export function rewardOf(verdict: Verdict | null): Pick<Trajectory, "reward" | "reward_components"> {
  const components = Object.entries(verdict?.components ?? {});
  return {
    reward: verdict?.reward ?? null,
    reward_components: components.map(([name, { value, weight }]) => ({ scope: "rollout", target: null, name, value, weight })),
  };
}

function enter(setup: RunSetup, plan: RolloutPlan, attempt: RunningAttempt, state: "init" | "run" | "post"): void {
  attempt.times[state] = Date.now();
  const { set_id = setup.run_id, rollout_id, sample_index, task } = plan;
  setup.onProgress({ type: "state", set_id, rollout_id, task_id: task.task_id, sample_index, attempt: plan.attempt, state });
}

function keptOf({ sha256, bytes, changes }: WorkLayer) {
  return { sha256, bytes, paths: changes.length };
}

function recordOf(plan: RolloutPlan, attempt: RunningAttempt, state: RolloutRecord["state"], trajectory: Trajectory | null): RolloutRecord {
  const { run, verdict } = attempt;
  return {
    rollout_id: plan.rollout_id,
    attempt: plan.attempt,
    task_id: plan.task.task_id,
    task_hash: plan.task_hash,
    group_id: plan.group_id,
    group_size: plan.group_size,
    sample_index: plan.sample_index,
    harness: plan.harness.name,
    harness_version: plan.harness.version,
    state,
    session_id: attempt.session?.id ?? null,
    stop_reason: run?.stop_reason ?? attempt.error?.code ?? null,
    exit_code: run?.exit_code ?? null,
    verdict,
    revision: 1,
    error: attempt.error,
    mask_reason: state === "done" ? lossOf(run, verdict, attempt.error, attempt.session?.callCount ?? 0).mask_reason : null,
    sandbox: attempt.sandbox && { ...attempt.sandbox },
    setup: attempt.setUp && keptOf(attempt.setUp),
    work: attempt.work && keptOf(attempt.work),
    steps: attempt.steps.map(({ name, run, work }) => ({ name, stop_reason: run.stop_reason, work: work && keptOf(work) })),
    network: usesNetwork(plan.task.environment) ? attempt.rules.log.use() : null,
    times: attempt.times,
    output_tail: run?.output_tail ?? null,
    summary: trajectory && {
      turns: trajectory.calls.length,
      sampled_tokens: trajectory.fidelity.sampled_tokens,
      trainable_tokens: trajectory.fidelity.trainable_tokens,
      untrained_by_agent: untrainedByAgent(trajectory),
      traces: trajectory.traces.length,
    },
  };
}
