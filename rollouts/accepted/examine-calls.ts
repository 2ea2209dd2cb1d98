/**
 * Examines a task whose known solution is calls of tools: each list of calls is made through the relay, in a sandbox with
 * services of its own, and graded as a rollout is.
 */
import { AlidadeError } from "../../base/errors.ts";
import { temporaryLayers, type WorkLayer } from "../../base/files/layer.ts";
import type { AdmissionGrading, AdmissionReason } from "../../base/schema/admission.ts";
import { isIsolated, type Verdict } from "../../base/schema/rollout.ts";
import type { Task, ToolCallOrder } from "../../base/schema/task.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { baselineOf, type Examination, type ExaminationOptions, reasonsAgainst } from "../../graders/admission/index.ts";
import {
  deliveredFiles,
  deliveredSandbox,
  freshSandbox,
  grade,
  keepSetUp,
  readServicesAfter,
  readServicesBefore,
  takeWork,
} from "../../graders/index.ts";
import type { Sandbox, SandboxBackend } from "../../sandboxes/index.ts";
import { areAgentsDoing, playCall, playCalls, type UnansweredService } from "../services/index.ts";

type Play = { name: string; calls: readonly ToolCallOrder[] };

/** Throws what the infrastructure did: it says nothing of the task. */
export async function examineCalls(
  task: Task & { gold_calls: ToolCallOrder[] },
  backend: SandboxBackend,
  options: ExaminationOptions,
): Promise<Examination> {
  const gradings: AdmissionGrading[] = [];
  const verdicts: Verdict[] = [];
  let image_digest: string | null = null;
  const bad = Object.entries(task.bad_calls ?? {}).map(([name, calls]) => ({ name: `bad calls ${name}`, calls }));
  const plays = [{ name: "gold", calls: task.gold_calls }, { name: "no-op", calls: [] }, ...bad];
  for (const play of plays)
    for (let time = 1; time <= (bad.includes(play) ? 1 : options.times); time++) {
      const { verdict, digest } = await gradedPlay(task, backend, play, options);
      const { reward, status, tier, duration_ms, error } = verdict;
      const grading = { work: play.name, language: null, time, reward, status, tier, duration_ms, memory_mb: null };
      gradings.push({ ...grading, error: error?.message ?? null });
      verdicts.push(verdict);
      image_digest = digest;
      options.onGraded?.(gradings.at(-1) as AdmissionGrading);
    }
  const reasons = [...reasonsAgainst(task, gradings, null), ...againstBadCalls(gradings)];
  const leak_scan = { leaks: [], looked_for: 0, not_scanned: [notScanned] };
  return {
    gradings,
    verdicts,
    leak_scan,
    reasons,
    baseline: baselineOf(gradings),
    image_digest,
    whole: isIsolated(backend.capabilities.isolation),
  };
}

const notScanned = "calls of tools: their words are no lines that a file could give away";

async function gradedPlay(task: Task, backend: SandboxBackend, play: Play, options: ExaminationOptions) {
  const { signal, graders } = options;
  await using kept = await temporaryLayers();
  await using sandbox = await deliveredSandbox(task, backend, options, signal);
  const delivered = await deliveredFiles(task);
  const setUp = await keepSetUp(sandbox, task, delivered, kept.folder, signal);
  const asked = { signal, graders };
  const before = await readServicesBefore(sandbox, task, kept.folder, asked);
  const { trajectory, down, failure } = await played(task, sandbox, play, signal);
  await sandbox.freeze("reads");
  const create = (within: AbortSignal) => deliveredSandbox(task, backend, options, within);
  const trial = { task, runs: trajectory.tool_runs ?? [], sandbox, create };
  const findDoing = (questions: readonly UnansweredService[]) => areAgentsDoing(questions, trial, signal);
  if (failure && !(down && (await findDoing([{ server: down.name, service: down.service }]))[0])) throw failure;
  const services = before && (await readServicesAfter(sandbox, task, before, kept.folder, { end: true, findDoing, ...asked }));
  const work: WorkLayer = await takeWork(sandbox, task, delivered, kept.folder, signal, setUp);
  const context = { task, signal, isolation: backend.capabilities.isolation, ...(graders && { graders }) };
  const verdict = await grade({
    ...context,
    work,
    trajectory,
    ...(services && { services }),
    fresh: freshSandbox(context, backend, { ...options, setUp }),
  });
  return { verdict, digest: sandbox.facts.image_digest };
}

/** The record of these calls, as if a model had asked for each. `down`, `failure`: of the relay, after which no call was made. */
async function played(task: Task, sandbox: Sandbox, { name, calls }: Play, signal: AbortSignal) {
  await using play = await playCalls(task.environment.tools ?? [], sandbox, signal);
  const { relay } = play;
  for (const call of calls) {
    if (!relay.servers.includes(call.server)) throw unknownServer(task, name, call, relay.servers);
    if (relay.failure === null) await playCall(relay, { ...call, arguments: JSON.stringify(call.arguments) });
  }
  const { tool_runs = [], ...told } = await play.trajectory();
  const trajectory: Trajectory = { ...told, tool_runs: tool_runs.map((run) => ({ ...run, unasked: false })) };
  return { trajectory, down: relay.down, failure: relay.failure };
}

function unknownServer({ task_id }: Task, play: string, { server }: ToolCallOrder, servers: string[]): AlidadeError {
  const message = `task ${task_id}: the calls "${play}" name the server ${server}: there is ${servers.join(", ")}`;
  return new AlidadeError("task_invalid", message, { param: "gold_calls" });
}

function againstBadCalls(gradings: readonly AdmissionGrading[]): AdmissionReason[] {
  const baseline = baselineOf(gradings);
  return gradings
    .filter(({ work, reward }) => work.startsWith("bad calls ") && (reward === null || reward > (baseline ?? 0)))
    .map(({ work, reward }) => ({
      code: reward === null ? "ungraded" : "hackable",
      message: `${work} must earn no more than no calls (${baseline}), and earn ${reward ?? "no reward"}: make the grader tell them from the solution`,
    }));
}
