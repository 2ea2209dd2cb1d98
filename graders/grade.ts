/** The one way from work to verdict, for rollouts and for `alidade check`. */
import { AlidadeError, asAlidadeError, type ErrorCode, errorCodes } from "../base/errors.ts";
import { readFolder, type TreeFile } from "../base/files/file-tree.ts";
import type { WorkLayer } from "../base/files/layer.ts";
import { Deadline } from "../base/host/deadline.ts";
import { untilAborted } from "../base/host/until-aborted.ts";
import type { Service } from "../base/schema/environment/services.ts";
import { isLent, type Verdict } from "../base/schema/rollout.ts";
import type { Environment, Limits, Task } from "../base/schema/task.ts";
import type { Sandbox, SandboxBackend, SandboxSpec } from "../sandboxes/index.ts";
import { setUp, specOf } from "../sandboxes/index.ts";
import { NetworkLog, type NetworkRules, openNetwork, plainRules } from "../sandboxes/network/index.ts";
import { wholeSeconds } from "./fault/clock.ts";
import { provenHungParts } from "./fault/hung-part.ts";
import { faultOfTools, lacksTools, unavailable } from "./fault/missing-tools.ts";
import { gradeItsOwn, hadTime, isMeasured, type OwnGrading, saidOwn } from "./fault/own-gradings.ts";
import type { GradeContext, GradingSandbox } from "./grader.ts";
import { graderOf, specOfGrader } from "./registry.ts";
import { highestReward, lowestReward, whyOutside } from "./rules/reward-range.ts";
import { keepsProcesses } from "./shared/place-to-grade.ts";
import { taskOfStep } from "./steps.ts";
import { placeSetUp } from "./work/set-up-layer.ts";

/**
 * Grades. What the infrastructure did becomes a verdict without a reward, what the work did to its grading one of 0.
 * Rejects never: a grading that went wrong is data.
 *
 * A work can kill the script that grades it, fill its disk, never end, or break it otherwise, and whether it did cannot be
 * seen from the failure. So the task's own files are graded right after. Where they fail as well, the grader or the
 * infrastructure is at fault; where they are graded the work gets another grading, and what fails twice then is its own
 * doing. What ran out of time needs more: a machine may be too slow for one work and not for the other, so the task's own
 * files must have ended well inside the same limit (`hadTime`).
 *
 * Tests that could not fetch their tools are told apart in the same way (fault/missing-tools.ts), also where they wrote a
 * reward.
 */
export async function grade(context: GradeContext): Promise<Verdict> {
  const first = await gradeOnce(context);
  // Parts are graded one by one, and each was asked about.
  const hasParts = graderOf(context.task.grader, context.graders).parts !== undefined;
  // Where the agent's processes had ended when it was lent, none of them can have done that.
  const isLost = context.lend !== undefined && !keepsProcesses(context.task) && first.error?.code === "sandbox_died";
  if (hasParts || isLost) return first;
  const found = await withItsTools(context, first);
  if (!mayBeItsDoing(found)) return found;
  return atFaultOrNot(context, found);
}

/** The verdict, where nothing shows that its tests lacked tools or where that was the work's doing; else one without a reward. */
async function withItsTools(context: GradeContext, verdict: Verdict): Promise<Verdict> {
  if (!lacksTools(verdict) || verdict.reward === highestReward(context.task)) return verdict;
  const own = await gradeItsOwn(context, gradeOnce, ([unchanged]) => unchanged?.unfetched != null);
  const fault = faultOfTools(own);
  if (fault === "unavailable") return unavailable(verdict, own);
  return withOwn(fault === "work" ? await gradeOnce(context) : verdict, own);
}

async function atFaultOrNot(context: GradeContext, first: Verdict): Promise<Verdict> {
  const own = await gradeItsOwn(context, gradeOnce, () => isHang(first));
  if (!isProof(first, own)) return withOwn(first, own);
  const again = await gradeOnce(context);
  if (!mayBeItsDoing(again)) return again;
  return isProof(again, own) ? atFault(context.task, again, own) : withOwn(again, own);
}

function mayBeItsDoing({ status, error }: Verdict): boolean {
  const isTheUsers = errorCodes[error?.code as ErrorCode] === "user";
  // A server that was not asked has seen no work.
  const isAway = error?.code === "grader_unreachable" || error?.code === "verifier_unavailable";
  return (status === "grader_error" || status === "grader_timeout" || status === "infra_error") && !isTheUsers && !isAway;
}

function isHang({ status }: Verdict): boolean {
  return status === "grader_timeout";
}

/** Do the task's own files show that neither grader nor machine brought this failure about? */
function isProof(failure: Verdict, own: readonly OwnGrading[]): boolean {
  return isHang(failure) ? hadTime(own) : isMeasured(own);
}

function withOwn(verdict: Verdict, own: readonly OwnGrading[]): Verdict {
  return { ...verdict, evidence: { ...verdict.evidence, own_files: own } };
}

function atFault(task: Task, verdict: Verdict, own: readonly OwnGrading[]): Verdict {
  const parted = provenHungParts(verdict);
  if (parted !== null) return withOwn(parted, own);
  const { code = "grader_error", message = "" } = verdict.error ?? {};
  const said = `the task's own files were graded right after (${saidOwn(own)}), and this work failed again`;
  const error = { code, message: `${message}; ${said}`, status: null };
  return { ...withOwn(verdict, own), reward: lowestReward(task), status: "no_output", error };
}

async function gradeOnce(context: GradeContext): Promise<Verdict> {
  const started = performance.now();
  using deadline = new Deadline(wholeSeconds(context.task.limits) * 1_000);
  const signal = AbortSignal.any([context.signal, deadline.signal]);
  try {
    signal.throwIfAborted();
    const { task, graders } = context;
    const grader = graderOf(task.grader, graders);
    const spec = specOfGrader(task.grader, graders);
    const verdict = await (grader.parts === undefined
      ? untilAborted(grader.grade(spec, { ...context, signal }), signal)
      : grader.grade(spec, {
          ...context,
          part: (own) => grade({ ...context, task: { ...task, grader: own } }),
          step: (index) => gradeStep(context, index),
        }));
    context.signal.throwIfAborted();
    return { ...withKept(task, withinRange(task, verdict)), ...(grader.version !== undefined && { grader_version: grader.version }) };
  } catch (error) {
    const failure = deadline.signal.aborted ? timeoutError(context) : asAlidadeError(error, "grader_error", "grading: ");
    const duration_ms = performance.now() - started;
    const isResult = failure.owner === "policy" && !context.signal.aborted;
    return isResult ? noOutput(context.task, failure, duration_ms) : unmeasured(context, failure, duration_ms);
  }
}

/** A step that the agent never came to is its doing: what the infrastructure broke is not graded at all. */
export function gradeStep(context: GradeContext, index: number): Promise<Verdict> {
  const { steps = [], services: _, ...rest } = context;
  const task = taskOfStep(context.task, index);
  const left = steps[index];
  if (left !== undefined) return grade({ ...rest, ...left, task });
  return Promise.resolve(noOutput(task, new AlidadeError("output_unreadable", "the agent left no work of this step")));
}

/** Says in the verdict that the agent's processes lived while it was made. */
function withKept(task: Task, verdict: Verdict): Verdict {
  if (!keepsProcesses(task) || !isLent(verdict.isolation)) return verdict;
  return { ...verdict, evidence: { ...verdict.evidence, kept_processes: true } };
}

function withinRange(task: Task, verdict: Verdict): Verdict {
  const message = verdict.reward === null ? null : whyOutside(task, verdict.reward);
  if (message === null) return verdict;
  return { ...verdict, reward: null, status: "grader_error", error: { code: "grader_error", message, status: null } };
}

/** The verdict on what cannot be graded where that is the policy's own doing: without a reward it would be a place to hide. */
export function noOutput(task: Task, error: AlidadeError, duration_ms = 0): Verdict {
  return { ...ungraded(task, error, duration_ms), reward: lowestReward(task), status: "no_output" };
}

/**
 * The agent may have filled its disk to the last byte, and the tests have to stand beside its work: else a full disk
 * would be a way to get no reward instead of the one that it deserves.
 */
const diskShare = 2;

/** The limits of a grader's sandbox. */
export function gradeLimits(limits: Limits): Limits {
  return { ...limits, disk_mb: diskShare * limits.disk_mb };
}

/**
 * Labels of a sandbox, for the reaper, and what its task may reach of the network; plain rules where left out. `setUp`: what
 * the task's set-up left where it has run, which is then put in place and not run again.
 */
export type SandboxOwner = { run_id: string; owner: string; rules?: NetworkRules; setUp?: WorkLayer | null };

/**
 * A fresh sandbox of the task's environment for the grader, or of another one that it names, under the rollout's name so
 * that the reaper finds it. One that cannot be released is left to it: the verdict is what it is.
 */
export function freshSandbox(
  context: Pick<GradeContext, "task" | "signal">,
  sandboxes: Pick<SandboxBackend, "create">,
  owner: SandboxOwner,
) {
  return async (other: Partial<Pick<Task, "environment" | "limits">> = {}): Promise<GradingSandbox> => {
    const asked = { ...context.task, ...other };
    const task = gradingTask(asked);
    const rules = gradingRules(owner.rules ?? plainRules());
    // What the task's own set-up left belongs to its own environment.
    const setUp = asked.environment === context.task.environment ? (owner.setUp ?? null) : null;
    const sandbox: GradingSandbox = await deliveredSandbox(task, sandboxes, { ...owner, rules, setUp }, context.signal);
    sandbox.network = rules.log;
    const [exec, release] = [sandbox.exec.bind(sandbox), sandbox[Symbol.asyncDispose].bind(sandbox)];
    sandbox[Symbol.asyncDispose] = () => Promise.resolve(release()).catch(() => undefined);
    await using scope = new AsyncDisposableStack();
    scope.use(sandbox);
    const network = scope.use(await openNetwork(sandbox, "grading", task.environment.grading_network, rules));
    scope.move();
    sandbox.exec = (argv, options = {}) => exec(argv, { ...options, env: { ...network.env, ...options.env } });
    sandbox[Symbol.asyncDispose] = async () => {
      await Promise.resolve(network[Symbol.asyncDispose]()).catch(() => undefined);
      await Promise.resolve(release()).catch(() => undefined);
    };
    return sandbox;
  };
}

/** Each grading has a log and a budget of its own: an agent that spends all of its bytes takes none of the tests'. */
export function gradingRules(rules: NetworkRules): NetworkRules {
  return { ...rules, log: new NetworkLog(rules.log) };
}

/** The sandbox that a grader of this task gets. */
export function graderSpec(task: Task, owner: { run_id: string; owner: string }): SandboxSpec {
  return specOf(gradingTask(task), owner);
}

function gradingTask(task: Task): Task {
  return { ...task, environment: withServicesOfGrading(task.environment), limits: gradeLimits(task.limits) };
}

/** Without services apart, unless the task asks for them: what a grader reads of those is what they were when the agent ended. */
function withServicesOfGrading(environment: Environment): Environment {
  const { services = {}, grading_services, ...rest } = environment;
  const isAsked = (name: string, { network }: Service) => grading_services?.includes(name) ?? network === "agent";
  const left = Object.entries(services).filter(([name, service]) => isAsked(name, service));
  return left.length === 0 ? rest : { ...rest, services: Object.fromEntries(left) };
}

/** A sandbox of a task with the task's files in it, set up as the task says. */
export async function deliveredSandbox(
  task: Task,
  sandboxes: Pick<SandboxBackend, "create">,
  owner: SandboxOwner,
  signal: AbortSignal,
): Promise<Sandbox> {
  await using scope = new AsyncDisposableStack();
  const sandbox = scope.use(await sandboxes.create(specOf(task, owner), signal));
  await sandbox.writeFiles(await deliveredFiles(task));
  if (owner.setUp) await placeSetUp(sandbox, owner.setUp, signal);
  else await setUp(sandbox, task, owner.rules ?? plainRules(), signal);
  scope.move();
  return sandbox;
}

/** What is put into the workdir before the agent starts. */
export async function deliveredFiles({ environment }: Task): Promise<TreeFile[]> {
  return environment.files === null ? [] : readFolder(environment.files);
}

function timeoutError({ task }: GradeContext): AlidadeError {
  return new AlidadeError("grader_timeout", `grading was not finished after ${wholeSeconds(task.limits)} seconds`);
}

function unmeasured({ task, signal }: GradeContext, error: AlidadeError, duration_ms: number): Verdict {
  const { code, message } = error;
  const verdict = ungraded(task, { code: signal.aborted ? "cancelled" : code, message }, duration_ms);
  return { ...verdict, reward: null, status: signal.aborted ? "cancelled" : statusOf(error) };
}

function ungraded(task: Task, { code, message }: Pick<AlidadeError, "code" | "message">, duration_ms: number) {
  return {
    components: {},
    // No sandbox was seen, so no isolation is claimed.
    tier: "T0",
    isolation: "none",
    grader: task.grader.kind,
    evidence: {},
    error: { code, message, status: null },
    duration_ms,
  } as const;
}

function statusOf(error: AlidadeError): Verdict["status"] {
  if (error.code === "grader_timeout" || error.code === "grader_error" || error.code === "judge_abstained") return error.code;
  if (error.code === "cancelled") return "cancelled";
  return error.owner === "infrastructure" ? "infra_error" : "grader_error";
}
