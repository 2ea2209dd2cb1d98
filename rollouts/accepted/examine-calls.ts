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
import { HarnessProxy, openTools } from "../../proxy/index.ts";
import { MemoryStore } from "../../proxy/store/index.ts";
import { reconstruct } from "../../reconstruct/index.ts";
import type { Sandbox, SandboxBackend } from "../../sandboxes/index.ts";

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
  const trajectory = await playedTrajectory(task, sandbox, play, signal);
  await sandbox.freeze("reads");
  const services = before && (await readServicesAfter(sandbox, task, before, kept.folder, { end: true, ...asked }));
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

/** The record of these calls, as if a model had asked for each. */
async function playedTrajectory(task: Task, sandbox: Sandbox, { name, calls }: Play, signal: AbortSignal): Promise<Trajectory> {
  await using proxy = await HarnessProxy.start({ store: new MemoryStore(), version: "check" });
  const { session } = await proxy.openSession({ purpose: "eval", sandboxed: true });
  await using relay = await openTools(session, task.environment.tools ?? [], sandbox, signal);
  for (const [index, call] of calls.entries()) {
    if (!relay.servers.includes(call.server)) throw unknownServer(task, name, call, relay.servers);
    const params = { name: call.tool, arguments: call.arguments };
    await relay.answer(call.server, JSON.stringify({ jsonrpc: "2.0", id: index + 1, method: "tools/call", params }));
    if (relay.failure) throw relay.failure;
  }
  const { tool_runs = [], ...told } = reconstruct(await proxy.sessions.store.read(session.id));
  return { ...told, tool_runs: tool_runs.map((run) => ({ ...run, unasked: false })) };
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
