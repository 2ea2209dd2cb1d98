/**
 * One attempt at a rollout, read from top to bottom: lease a sandbox, open a session, run the harness, seal the
 * session, take the work out, reconstruct, grade elsewhere, ask the teacher if there is one, store. A failure at any step
 * is a record, not an exception, and reconstruction runs whatever happened before.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError, asAlidadeError, messageOf } from "../base/errors.ts";
import type { WorkLayer } from "../base/files/layer.ts";
import type { Limiter } from "../base/host/limiter.ts";
import { untilAborted } from "../base/host/until-aborted.ts";
import type { RolloutRecord, UserRecord } from "../base/schema/rollout.ts";
import type { Task } from "../base/schema/task.ts";
import type { Trajectory } from "../base/schema/trajectory.ts";
import type { GradeContext, ServiceReadings, StepWork } from "../graders/index.ts";
import {
  asksModels,
  freshSandbox,
  grade,
  graderSpec,
  noOutput,
  readServicesAfter,
  saidTexts,
  sendsAnswers,
  startsFresh,
  takeWork,
} from "../graders/index.ts";
import { isShared, keepsProcesses, lendSandbox, standStill } from "../graders/shared/index.ts";
import { toErrorRecord } from "../proxy/index.ts";
import { isFull } from "../proxy/store/index.ts";
import { reconstruct, reconstruction, wasAnswered } from "../reconstruct/index.ts";
import type { ExpectedSandbox } from "../sandboxes/index.ts";
import { engineAddresses, type NetworkRules, plainRules } from "../sandboxes/network/index.ts";
import { runDialogue } from "./dialogue/index.ts";
import { findDoing } from "./find-doing.ts";
import { samplersOf } from "./open-sampler.ts";
import { agentSpec, type PreparedRollout, packOf, prepare } from "./prepare.ts";
import { around, newAttempt, type RunningAttempt, recordOf, worthOf } from "./records/attempt-record.ts";
import { attemptKey } from "./records/run-records.ts";
import type { ResumePlan, RolloutPlan } from "./rollout-plan.ts";
import { runHarness } from "./run-harness.ts";
import type { RunSetup } from "./run-setup.ts";
import { runSteps } from "./run-steps.ts";

/** How an attempt ended; of a rollout its last one. */
export type RolloutOutcome = { record: RolloutRecord; trajectory: Trajectory | null };

/** `drain`: ends its waiting for a place. Then there is no record, and the reason of `drain` is thrown. */
export function runRollout(setup: RunSetup, plan: RolloutPlan, signal: AbortSignal, drain?: AbortSignal): Promise<RolloutOutcome> {
  const stray = new AbortController();
  const { guard } = setup;
  const body = () => runAttempt(setup, plan, { signal, stray: stray.signal, drain });
  if (guard === undefined) return body();
  return guard.run(attemptKey(plan), (error) => stray.abort(strayError(error, guard.crashFile)), body);
}

/** A bug of ours, or of a plug-in: the stack says where. */
function strayError(error: unknown, crashFile: string): AlidadeError {
  const message = `an exception that no step awaited ended this rollout: ${messageOf(error)} (its stack is in ${crashFile})`;
  return new AlidadeError("internal", message, { cause: error });
}

/** `stray`: fires with what comes from the attempt and reaches none of its steps. */
type Ends = { signal: AbortSignal; stray: AbortSignal; drain: AbortSignal | undefined };

async function runAttempt(setup: RunSetup, plan: RolloutPlan, { signal: stopped, stray, drain }: Ends): Promise<RolloutOutcome> {
  const signal = AbortSignal.any([stopped, stray]);
  const attempt = newAttempt(networkRules(setup), Date.now());
  const attempting = { setup, plan, attempt, signal, stray, waiting: drain ? AbortSignal.any([signal, drain]) : signal };
  try {
    await setup.slots.rollout.run(attempting.waiting, () => runAndGrade(attempting));
  } catch (error) {
    // Not begun: nothing of it is on record.
    if (drain?.aborted && !signal.aborted && attempt.times.init === undefined) throw drain.reason;
    const failure = stopped.aborted
      ? new AlidadeError("cancelled", "the run was stopped")
      : asAlidadeError(firstFailure(error), "sandbox_error");
    attempt.error = toErrorRecord(failure);
    // The agent had this sandbox, so its state, broken or not, is the agent's result.
    if (attempt.session && failure.owner === "policy") attempt.verdict = noOutput(plan.task, failure);
  } finally {
    attempt.grading?.[Symbol.dispose]();
  }
  // Whatever its steps made of it. A work that was graded before is graded.
  if (stray.aborted && attempt.verdict?.reward == null) {
    attempt.error = toErrorRecord(stray.reason);
    attempt.verdict = null;
  }
  if (plan.resume?.how === "replay" && attempt.error?.code === "replay_diverged" && !signal.aborted)
    return runAttempt(setup, beginAgain(attempting, plan.resume), { signal: stopped, stray, drain });
  attempt.times.done = Date.now();
  // What it came to is written down also where an exception ended it.
  return conclude({ ...attempting, signal: stopped });
}

/** The session that its harness has left is sealed by now. Its log stays, and is no rollout's any more. */
function beginAgain(
  { setup, plan, attempt: { error } }: Attempting,
  { again_tokens, sampled_tokens }: Extract<ResumePlan, { how: "replay" }>,
): RolloutPlan {
  const why = error?.message ?? "the replay left its record";
  setup.onProgress({ type: "note", text: `${attemptKey(plan)} begins anew, because it could not go on where its process died: ${why}` });
  return { ...plan, resume: { how: "again", again_tokens: again_tokens + sampled_tokens, why } };
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

/** One attempt, and what it is made with. */
type Attempting = {
  setup: RunSetup;
  plan: RolloutPlan;
  attempt: RunningAttempt;
  signal: AbortSignal;
  stray: AbortSignal;
  waiting: AbortSignal;
};

type Concluding = Pick<Attempting, "setup" | "plan" | "attempt" | "signal">;

/** Time for what listens to the signal. What waits for a stream that an exception broke may wait for ever. */
const strayGraceMs = 10_000;

/** A step of an attempt in its line. It ends soon after an exception that reached no step, whatever it waits for. */
function inLine<T>(line: Limiter, waiting: AbortSignal, { setup, plan, stray }: Attempting, step: () => Promise<T>): Promise<T> {
  return line.run(waiting, async () => {
    // Between steps the rollout does nothing that could end the process.
    using _step = setup.guard?.step(attemptKey(plan));
    const late = new AbortController();
    let timer: NodeJS.Timeout | undefined;
    const stop = (): void => {
      timer = setTimeout(() => late.abort(stray.reason), strayGraceMs);
    };
    stray.addEventListener("abort", stop, { once: true });
    const work = step();
    try {
      return await untilAborted(work, late.signal);
    } finally {
      stray.removeEventListener("abort", stop);
      clearTimeout(timer);
      // What it makes after all has no other owner.
      if (late.signal.aborted) work.then(release).catch(() => undefined);
    }
  });
}

async function release(made: unknown): Promise<void> {
  if (typeof made === "object" && made !== null && Symbol.asyncDispose in made) await (made as AsyncDisposable)[Symbol.asyncDispose]();
}

async function runAndGrade(attempting: Attempting): Promise<void> {
  const { setup, plan, attempt, waiting } = attempting;
  using expected = await expectAgent(setup, plan, waiting);
  const work = await setup.slots.sandbox.run(waiting, () => inSandbox(attempting, expected));
  await readLog(setup, attempt);
  if (work === null) return;
  attempt.work = work;
  if (attempt.verdict === null) await gradeWork(attempting, work);
}

async function gradeWork(attempting: Attempting, work: WorkLayer, place: Pick<GradeContext, "lend"> = {}): Promise<void> {
  const { setup, plan, attempt, signal } = attempting;
  await inLine(setup.slots.post, signal, attempting, async () => {
    enter(attempting, "post");
    const { graders } = setup;
    const openSampler = samplersOf(setup.proxy, (text) => setup.onProgress({ type: "note", text }));
    await using sampler = asksModels(plan.task.grader, graders) ? await openSampler(plan.task.task_id, plan.rollout_id) : undefined;
    const trajectory = attempt.told?.(around(plan, attempt));
    attempt.verdict = await grade({
      ...gradingContext(attempting),
      ...place,
      work,
      ...(attempt.services && { services: attempt.services }),
      ...(trajectory && { trajectory }),
      ...(sampler && { sampler }),
    });
  });
}

function gradingContext({ setup, plan, attempt, signal }: Attempting): Omit<GradeContext, "work"> {
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
async function inSandbox(attempting: Attempting, expected: ExpectedSandbox | undefined): Promise<WorkLayer | null> {
  const { setup, plan, attempt, signal, waiting } = attempting;
  await using prepared = await inLine(setup.slots.init, waiting, attempting, async () => {
    enter(attempting, "init");
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
  const work = await inLine(setup.slots.run, signal, attempting, () => atWork(attempting, prepared));
  // What was graded in there has said itself when the agent had ended.
  attempt.times.ran ??= Date.now();
  return work;
}

async function atWork(attempting: Attempting, prepared: PreparedRollout): Promise<WorkLayer | null> {
  const { setup, plan, attempt, signal } = attempting;
  enter(attempting, "run");
  await whenThereIsSpace(setup, signal, () => setup.folder.record(recordOf(plan, attempt, "run", null)));
  if (plan.task.steps) return inSteps(attempting, prepared);
  const { simulated_user: user } = plan.task;
  const onUser = (record: UserRecord): void => {
    attempt.user = record;
  };
  const run = user ? await runDialogue({ setup, plan, prepared, onUser }, user, signal) : await runHarness(setup, plan, prepared, signal);
  attempt.run = run;
  const shared = isShared(plan.task);
  const isWanted = !run.infrastructure && !shared && startsFresh(plan.task.grader, setup.graders);
  if (isWanted) attempt.grading = setup.warm?.expect(graderSpec(plan.task, setup));
  await whenThereIsSpace(setup, signal, () => prepared.session.seal(run.stop_reason));
  attempt.error = attempt.run.infrastructure ?? attempt.run.failure;
  // What a harness leaves without a call is not the policy's work: there is nothing to grade.
  if (run.infrastructure || prepared.session.callCount === 0) return null;
  if (shared) return await gradedThere(attempting, prepared);
  return await whenThereIsSpace(setup, signal, () => leftBehind(attempting, prepared));
}

/** Step after step, each graded before the next one begins. */
async function inSteps(attempting: Attempting, prepared: PreparedRollout): Promise<WorkLayer | null> {
  const { setup, plan, attempt, signal } = attempting;
  const lend = isShared(plan.task) && { lend: lendSandbox(prepared.sandbox, plan.task, attempt.rules) };
  const context = { ...gradingContext(attempting), ...lend };
  let heard = 0;
  const take = async (task: Task, end: boolean): Promise<StepWork> => {
    const said = await saidIn(attempting, prepared, plan.task, heard);
    heard += said.length;
    const services = await whenThereIsSpace(setup, signal, () => servicesAfter(attempting, prepared, { task, end, answers: said }));
    attempt.services = services;
    const work = await whenThereIsSpace(setup, signal, () => workOf(setup, prepared, plan, signal));
    return { work, ...(services && { services }) };
  };
  const { times } = attempt;
  const { steps, verdict, failure } = await runSteps({ setup, plan, prepared, context, take, times }, signal);
  attempt.steps = steps;
  attempt.verdict = verdict;
  // An engine that was too slow for one step was so for the rollout.
  const run = steps.find((step) => step.run.slow_engine)?.run ?? steps.at(-1)?.run ?? null;
  attempt.run = failure === null ? run : null;
  attempt.error = failure ? toErrorRecord(failure) : (run?.infrastructure ?? run?.failure ?? null);
  await whenThereIsSpace(setup, signal, () => prepared.session.seal(attempt.run?.stop_reason ?? failure?.code ?? "exited"));
  return steps.at(-1)?.left?.work ?? null;
}

async function leftBehind(attempting: Attempting, prepared: PreparedRollout): Promise<WorkLayer> {
  const { setup, plan, signal } = attempting;
  await prepared.sandbox.freeze("reads");
  await readServices(attempting, prepared, true);
  return workOf(setup, prepared, plan, signal);
}

/** Once nothing of the agent runs any more. `end`: no grader needs the services after it. */
async function readServices(attempting: Attempting, prepared: PreparedRollout, end: boolean): Promise<void> {
  const { attempt, plan } = attempting;
  if (attempt.services !== null) return;
  const answers = await saidIn(attempting, prepared, plan.task);
  attempt.services = await servicesAfter(attempting, prepared, { task: plan.task, end, answers });
}

/** What the agent said behind the first `heard` texts, if a grader of the task sends it to a service. */
async function saidIn({ setup }: Attempting, { session }: PreparedRollout, task: Task, heard = 0): Promise<string[]> {
  if (!sendsAnswers(task, setup.graders)) return [];
  return saidTexts(reconstruct(await setup.proxy.sessions.store.read(session.id))).slice(heard);
}

type ReadingOrder = { task: Task; end: boolean; answers: readonly string[] };

/** Returns null if graders read nothing of the services. */
async function servicesAfter(
  { setup, plan, signal }: Attempting,
  prepared: PreparedRollout,
  { task, end, answers }: ReadingOrder,
): Promise<ServiceReadings | null> {
  const { sandbox, servicesBefore } = prepared;
  if (servicesBefore === null) return null;
  const options = { end, answers, signal, graders: setup.graders, findDoing: findDoing(setup, plan, prepared, signal) };
  return readServicesAfter(sandbox, task, servicesBefore, setup.folder.blobs, options);
}

/** Takes the work out of the agent's sandbox, for the record, and grades it there. */
async function gradedThere(attempting: Attempting, prepared: PreparedRollout): Promise<WorkLayer> {
  const { setup, plan, attempt, signal } = attempting;
  const { sandbox, session, network } = prepared;
  await (keepsProcesses(plan.task) ? standStill(sandbox) : sandbox.freeze());
  await whenThereIsSpace(setup, signal, () => readServices(attempting, prepared, false));
  const work = await whenThereIsSpace(setup, signal, () => workOf(setup, prepared, plan, signal));
  await network[Symbol.asyncDispose]();
  await whenThereIsSpace(setup, signal, () => setup.proxy.sessions.close(session, "the rollout is over"));
  await readLog(setup, attempt);
  attempt.times.ran = Date.now();
  await gradeWork(attempting, work, { lend: lendSandbox(sandbox, plan.task, attempt.rules) });
  return work;
}

function workOf({ folder }: RunSetup, { sandbox, delivered, setUp }: PreparedRollout, { task }: RolloutPlan, signal: AbortSignal) {
  return takeWork(sandbox, task, delivered, folder.blobs, signal, setUp);
}

async function conclude({ setup, plan, attempt, signal }: Concluding): Promise<RolloutOutcome> {
  const { session } = attempt;
  if (session) await whenThereIsSpace(setup, signal, () => setup.proxy.sessions.close(session, "the rollout is over"));
  await readLog(setup, attempt);
  const graded = toldOf(plan, attempt);
  const trajectory = graded && (await taught({ setup, plan, attempt, signal }, graded));
  const record = recordOf(plan, attempt, "done", trajectory);
  await whenThereIsSpace(setup, signal, () => (trajectory ? setup.folder.keep(trajectory, record) : Promise.resolve()));
  await whenThereIsSpace(setup, signal, () => setup.folder.record(record));
  return { record, trajectory };
}

/** Returns null if its log could not be read. */
function toldOf(plan: RolloutPlan, attempt: RunningAttempt): Trajectory | null {
  return attempt.told?.({ ...around(plan, attempt), ...worthOf(attempt) }) ?? null;
}

/**
 * Adds the teacher's logprobs. Meanwhile the rollout holds no place of a sandbox or of a grading. Evaluations and masked rollouts have no
 * use for them. A rollout that is stopped meanwhile counts as stopped, and its next attempt is scored.
 */
async function taught({ setup, plan, attempt, signal }: Concluding, graded: Trajectory): Promise<Trajectory | null> {
  if (setup.teacher === undefined || (plan.session.purpose ?? "train") !== "train" || !graded.in_loss) return graded;
  enter({ setup, plan, attempt }, "teach");
  const trajectory = await setup.teacher.teach(graded, signal).catch((error: unknown) => {
    if (signal.aborted) return null;
    throw error;
  });
  if (trajectory === null) {
    attempt.error = toErrorRecord(new AlidadeError("cancelled", "the run was stopped"));
    attempt.times.done = Date.now();
    return toldOf(plan, attempt);
  }
  if (trajectory.teacher !== undefined && wasAnswered(trajectory)) attempt.times.scored = trajectory.teacher.scored;
  attempt.times.done = Date.now();
  return trajectory;
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

function enter({ setup, plan, attempt }: Omit<Concluding, "signal">, state: "init" | "run" | "post" | "teach"): void {
  attempt.times[state] = Date.now();
  const { set_id = setup.run_id, rollout_id, sample_index, task } = plan;
  setup.onProgress({ type: "state", set_id, rollout_id, task_id: task.task_id, sample_index, attempt: plan.attempt, state });
}
