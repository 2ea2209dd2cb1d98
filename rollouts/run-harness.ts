/** RUN: the harness in its sandbox, and what its end means. */
import { AlidadeError, asAlidadeError, type ErrorCode, errorCodes } from "../base/errors.ts";
import { refusedHosts } from "../base/schema/refused-hosts.ts";
import type { ErrorRecord } from "../base/schema/session-log.ts";
import { pausableClock, toErrorRecord } from "../proxy/index.ts";
import type { ExecResult } from "../sandboxes/index.ts";
import { envInside } from "../sandboxes/index.ts";
import { findDoing } from "./find-doing.ts";
import { type FailedTurn, failedTurn } from "./last-call.ts";
import type { PreparedRollout } from "./prepare.ts";
import type { RolloutPlan } from "./rollout-plan.ts";
import type { RunSetup } from "./run-setup.ts";

/** What a person sees of a harness's output in the record; the calls are in the log anyway. */
const tailCharacters = 4_000;

export type HarnessRun = {
  stop_reason: string;
  exit_code: number | null;
  output_tail: string;
  /** The infrastructure's failure: nothing to grade, another attempt. */
  infrastructure: ErrorRecord | null;
  /** The policy's or the harness's own failure: a result. */
  failure: ErrorRecord | null;
  /** It was the clock that ended it: the agent's own, or the session's. */
  cut_by_clock: boolean;
  /** Share of the run during which the engine was at work on a call of this session, 0 to 1. The agent can make it what it likes. */
  engine_share: number;
  /** It was the clock, most of its time went to the engine, and the engine is slow for a question of ours too. */
  slow_engine: boolean;
};

/**
 * A sandbox that dies is an infrastructure failure in the result. Throws only where the policy took its sandbox down (its
 * memory), with which whatever could be graded is gone. `seconds`: what is left of the agent's time.
 */
export async function runHarness(
  setup: RunSetup,
  plan: RolloutPlan,
  prepared: PreparedRollout,
  signal: AbortSignal,
  seconds: number = plan.task.limits.agent_seconds,
): Promise<HarnessRun> {
  const { sandbox, launch, tools } = prepared;
  const { limits, environment } = plan.task;
  const started = Date.now();
  const late = new AbortController();
  // A weight update is not the agent's time: the clock stops while this session waits for one.
  using _clock = pausableClock(prepared.session, started, seconds, () => late.abort());
  const { replay } = prepared.session;
  // Behind the end of a replay that samples nothing, and where it left its record, the harness has nothing to do.
  void replay?.stopped.then(() => late.abort());
  // While the replay stands still at a record the clock does not go on: it gets the agent's time for itself.
  using _limit = replay && within(seconds, () => prepared.session.isReplaying && late.abort());
  let result: ExecResult;
  try {
    result = await sandbox.exec(launch.argv, {
      cwd: environment.workdir,
      env: { ...envInside(environment, sandbox), ...prepared.network.env, ...launch.env },
      // Without its tools what the agent does measures nothing.
      deadline: tools ? AbortSignal.any([late.signal, tools.failed]) : late.signal,
      max_output_bytes: limits.output_bytes,
      // How it ended stands in its last lines.
      keep_output: "end",
      signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    const failure = asAlidadeError(error, "sandbox_error");
    if (failure.owner === "policy") {
      // It had only repeated what it did before, which this policy may not have sampled.
      if (replay && replay.how !== "arrived") return brokenRun(toErrorRecord(lostInReplay(failure)));
      throw failure;
    }
    return brokenRun(toErrorRecord(failure));
  }
  // What the agent left running has no tools any more, and what it has begun is on record before the session is sealed.
  await tools?.stop();
  const output_tail = `${result.stdout.slice(-tailCharacters)}${result.stderr ? `\n[stderr]\n${result.stderr.slice(-tailCharacters)}` : ""}`;
  const paused = prepared.session.pausedSince(started, Date.now());
  const engine_share = Math.max(0, engineTime(prepared, started) - paused) / Math.max(1, Date.now() - started - paused);
  // A turn that it leaves by ending is sampled to its end, within its seconds, and trained like any other.
  await prepared.session.running.callsEnded(AbortSignal.any([late.signal, signal])).catch(() => undefined);
  // A harness may be gone before it is noted how its last answer ended.
  await prepared.session.running.answersEnded();
  const { lastFailure } = prepared.session;
  // What the agent left running must not keep the engine from answering us.
  prepared.session.stopCalls("the harness has ended");
  const noTools = await whyNoTools(setup, plan, prepared, signal);
  const failed = await failedTurn(setup.proxy.pool, lastFailure, signal);
  const meaning = meaningOf(plan, prepared, result, { failed, noTools });
  const cut_by_clock = meaning.stop_reason === "harness_timeout" || prepared.session.state.endedBy === "max_wall_seconds";
  const slow_engine = cut_by_clock && engine_share > mostlyEngine && (await isSlow(setup, prepared, signal));
  return { exit_code: result.exit_code, output_tail, cut_by_clock, engine_share, slow_engine, ...meaning };
}

/** Makes the result of a run that failed because of the infrastructure. */
export function brokenRun(record: ErrorRecord): HarnessRun {
  return {
    stop_reason: record.code,
    exit_code: null,
    output_tail: "",
    infrastructure: record,
    failure: null,
    cut_by_clock: false,
    engine_share: 0,
    slow_engine: false,
  };
}

/** Turns a run that exited normally into a failure of the policy. */
export function failedRun(run: HarnessRun, failure: AlidadeError): HarnessRun {
  const record = toErrorRecord(failure);
  return { ...run, stop_reason: record.code, failure: record };
}

function lostInReplay({ message }: AlidadeError): AlidadeError {
  return new AlidadeError("replay_diverged", `the replay did not come to its last recorded turn: ${message}`);
}

function within(seconds: number, onOver: () => void): Disposable {
  const timer = setTimeout(onOver, seconds * 1000);
  return { [Symbol.dispose]: () => clearTimeout(timer) };
}

/** Why the rollout has no tools any more: the machine's failure, or the agent's doing. null: it has them. */
async function whyNoTools(
  setup: RunSetup,
  plan: RolloutPlan,
  prepared: PreparedRollout,
  signal: AbortSignal,
): Promise<AlidadeError | null> {
  const { failure = null, down = null } = prepared.tools ?? {};
  if (failure?.code === "harness_blind") return new AlidadeError(failure.code, `${failure.message}${sightOf(plan)}`, { cause: failure });
  if (failure === null || down === null) return failure;
  const [isAgents] = await findDoing(setup, plan, prepared, signal)([{ server: down.name, service: down.service }]);
  if (!isAgents) return failure;
  return new AlidadeError("tool_service_killed", `${failure.message}; what the agent did is why, for a new one answers`);
}

/** The cure for `harness_blind`, for its message. */
function sightOf({ harness: { name, sight } }: RolloutPlan): string {
  return `; ${sight ?? `${name} must hand the pictures of MCP results on to the model as they are`}`;
}

/** How a replay ended that nothing follows; null where it is to be sampled on, and has arrived. */
function replayEnd({ session }: PreparedRollout, result: ExecResult): AlidadeError | "arrived" | null {
  const { replay } = session;
  if (replay === null) return null;
  if (replay.how === "diverged") return new AlidadeError("replay_diverged", session.state.replayEnded?.difference ?? "it left its record");
  if (replay.how === "arrived") return replay.stops ? "arrived" : null;
  const how = result.timed_out ? "in the agent's time" : `before the harness ended with exit code ${result.exit_code}`;
  return new AlidadeError("replay_diverged", `the replay did not come to its last recorded turn ${how}`);
}

/** Above this share of its time a rollout that the clock cut was waiting for the engine, not for its own commands. */
const mostlyEngine = 0.5;

/** Whether the engine that the session called last is slow for us as well. */
async function isSlow({ proxy }: RunSetup, { session }: PreparedRollout, signal: AbortSignal): Promise<boolean> {
  const served = session.running.lastServer();
  return served ? (await proxy.pool.watch.stateOf(served.slot, served.model, signal)) !== "answers" : false;
}

/**
 * In order of what explains most: our own refusal, the engine's failure, the clock, memory, a call that failed, the
 * harness's own word. How the harness took its last answer says nothing: some exit with 0 after a failure.
 */
function meaningOf(
  plan: RolloutPlan,
  prepared: PreparedRollout,
  result: ExecResult,
  { failed, noTools }: { failed: FailedTurn | null; noTools: AlidadeError | null },
): Pick<HarnessRun, "stop_reason" | "infrastructure" | "failure"> {
  const stopped = (code: ErrorCode, message: string): Pick<HarnessRun, "stop_reason" | "infrastructure" | "failure"> => {
    const record = toErrorRecord(new AlidadeError(code, message));
    return errorCodes[code] === "infrastructure"
      ? { stop_reason: code, infrastructure: record, failure: null }
      : { stop_reason: code, infrastructure: null, failure: record };
  };
  const { session } = prepared;
  const { harness } = plan;
  const end = harness.end(result);
  const { lastError, stopReason } = session.state;
  if (noTools) return stopped(noTools.code, noTools.message);
  const replayed = replayEnd(prepared, result);
  if (replayed === "arrived") return { stop_reason: "replayed", infrastructure: null, failure: null };
  if (replayed !== null) return stopped("replay_diverged", replayed.message);
  if (stopReason !== null) return { stop_reason: stopReason, infrastructure: null, failure: null };
  if (failed?.isInfrastructure) return { stop_reason: failed.record.code, infrastructure: failed.record, failure: null };
  // A host that it was refused may be why, and it says so seldom.
  const detail = `${end.message ? `: ${end.message}` : ""}${refusedHosts(prepared.network.log.use(), "agent")}`;
  // Without a call nothing is the policy's doing, however it ended.
  if (session.callCount === 0)
    return stopped("no_call_seen", `${harness.name} made no call to the LLM and ${endedHow(plan, result)}${detail}`);
  if (result.timed_out)
    return stopped("harness_timeout", `${harness.name} was still running after its ${plan.task.limits.agent_seconds} s and was killed`);
  if (result.out_of_memory)
    return stopped("sandbox_out_of_memory", `a process of the sandbox was killed for memory (limit ${plan.task.limits.memory_mb} MiB)`);
  if (failed) return { stop_reason: failed.record.code, infrastructure: null, failure: failed.record };
  if (end.failed && lastError?.code === "context_length_exceeded") return stopped("context_length_exceeded", lastError.message);
  if (end.failed) return stopped("harness_failed", `${harness.name} failed with exit code ${result.exit_code}${detail}`);
  return { stop_reason: "exited", infrastructure: null, failure: null };
}

function endedHow({ task }: RolloutPlan, { exit_code, timed_out, out_of_memory }: ExecResult): string {
  if (timed_out) return `was killed after its ${task.limits.agent_seconds} s`;
  if (out_of_memory) return `was killed for memory (limit ${task.limits.memory_mb} MiB)`;
  const where = "; it must call $OPENAI_BASE_URL (or $ANTHROPIC_BASE_URL), as it stands in its environment";
  return `ended with exit code ${exit_code}${exit_code === 0 ? where : ""}`;
}

/** Milliseconds since `started` during which at least one call was being sampled. */
function engineTime({ session }: PreparedRollout, started: number): number {
  const spans = session
    .calls()
    .map((call): [number, number] => [call.begun.time, call.outcome?.time ?? Date.now()])
    .sort((a, b) => a[0] - b[0]);
  let total = 0;
  let until = started;
  for (const [from, to] of spans) {
    if (to <= until) continue;
    total += to - Math.max(from, until);
    until = to;
  }
  return total;
}
