/**
 * Examines a task whose known solution is calls of tools: each list of calls is made through the relay, in a sandbox with
 * services of its own, and graded as a rollout is.
 */
import { AlidadeError } from "../../base/errors.ts";
import { temporaryLayers, type WorkLayer } from "../../base/files/layer.ts";
import type { AdmissionGrading, AdmissionReason } from "../../base/schema/admission.ts";
import { ownPlace, type ToolServer } from "../../base/schema/environment/tool-servers.ts";
import { isIsolated, type Verdict } from "../../base/schema/rollout.ts";
import type { Task, ToolCallOrder } from "../../base/schema/task.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { baselineOf, type Examination, type ExaminationOptions, reasonsAgainst } from "../../graders/admission/index.ts";
import {
  deliveredFiles,
  deliveredSandbox,
  exceptionsOf,
  freshSandbox,
  grade,
  keepSetUp,
  readServicesAfter,
  readServicesBefore,
  type ServiceReadings,
  stateDiffers,
  takeWork,
} from "../../graders/index.ts";
import type { Sandbox, SandboxBackend } from "../../sandboxes/index.ts";
import { areAgentsDoing, playCall, playCalls, type UnansweredService } from "../services/index.ts";
import { browserKeys, browserProbe } from "./browser-keys.ts";
import { againstCallProbes, againstReach, callProbes, type ProbeOutcome, pastRelay } from "./call-probes.ts";
import { scanReach } from "./reach-scan.ts";

/** `answer`: what is said last; left out: nothing. */
type Play = { name: string; calls: readonly ToolCallOrder[]; answer?: string | undefined };

/** Throws what the infrastructure did: it says nothing of the task. */
export async function examineCalls(
  task: Task & { gold_calls: ToolCallOrder[] },
  backend: SandboxBackend,
  options: ExaminationOptions,
): Promise<Examination> {
  await using kept = await temporaryLayers();
  return await new CallsExamination(task, backend, options, kept.folder).run();
}

const notScanned = "calls of tools: their words are no lines that a file could give away";
const noCat = "ports and sockets that the agent's commands reach: its image has no cat";
const otherEachTime = "one more write, and the right calls twice: the known calls leave another state each time";
const noOther = "one more write: bad_calls has no call that gold_calls has not";

type GradedPlay = { verdict: Verdict; digest: string | null; services: ServiceReadings | null; reach: AgentReach; sameState?: boolean };
type AgentReach = Awaited<ReturnType<typeof scanReach>>;

/** `past`: servers that are called past the relay. `scans`: looks first at what the agent reaches. `against`: its state is compared. */
type PlayOptions = { past?: readonly ToolServer[]; scans?: boolean; against?: GradedPlay };

class CallsExamination {
  readonly #task: Task & { gold_calls: ToolCallOrder[] };
  readonly #backend: SandboxBackend;
  readonly #options: ExaminationOptions;
  readonly #folder: string;
  readonly #gradings: AdmissionGrading[] = [];
  readonly #verdicts: Verdict[] = [];
  readonly #notScanned = [notScanned];
  #digest: string | null = null;

  constructor(task: Task & { gold_calls: ToolCallOrder[] }, backend: SandboxBackend, options: ExaminationOptions, folder: string) {
    this.#task = task;
    this.#backend = backend;
    this.#options = options;
    this.#folder = folder;
  }

  async run(): Promise<Examination> {
    const { gold_calls, gold_answer: answer, bad_calls = {} } = this.#task;
    const { times } = this.#options;
    const golds: GradedPlay[] = [];
    let reach: AgentReach = null;
    for (let time = 1; time <= times; time++) golds.push(await this.#play({ name: "gold", calls: gold_calls, answer }, time));
    for (let time = 1; time <= times; time++) {
      const idle = await this.#play({ name: "no-op", calls: [] }, time, { scans: time === 1 });
      reach ??= idle.reach;
    }
    for (const [name, calls] of Object.entries(bad_calls)) await this.#play({ name: `bad calls ${name}`, calls }, 1);
    const reasons = [...reasonsAgainst(this.#task, this.#gradings, null), ...againstBadCalls(this.#gradings)];
    const whole = isIsolated(this.#backend.capabilities.isolation);
    // Probes show nothing where the known calls earn too little, or no call too much.
    if (whole && reasons.length === 0) reasons.push(...(await this.#probe(golds, reach)));
    return {
      gradings: this.#gradings,
      verdicts: this.#verdicts,
      leak_scan: { leaks: [], looked_for: 0, not_scanned: this.#notScanned },
      ...(reach && { reach: reach.scan }),
      reasons,
      baseline: baselineOf(this.#gradings),
      image_digest: this.#digest,
      whole,
    };
  }

  async #probe(golds: readonly GradedPlay[], reach: AgentReach): Promise<AdmissionReason[]> {
    const outcomes = await this.#probeCalls(golds);
    if (reach === null) this.#notScanned.push(noCat);
    if (reach !== null && reach.reached.length > 0) {
      const { verdict } = await this.#play({ name: pastRelay, calls: this.#task.gold_calls }, 1, { past: reach.reached });
      outcomes.push({ name: pastRelay, reward: verdict.reward, differs: true });
    }
    if (this.#task.environment.display?.tools === "computer") {
      const { verdict } = await this.#play({ name: browserProbe, calls: browserKeys }, 1);
      outcomes.push({ name: browserProbe, reward: verdict.reward, differs: true });
    }
    return [...againstCallProbes(outcomes, baselineOf(this.#gradings)), ...(reach === null ? [] : againstReach(reach.scan))];
  }

  async #probeCalls([first, second]: readonly GradedPlay[]): Promise<ProbeOutcome[]> {
    if (first && second && (await this.#differ(first, second))) {
      this.#notScanned.push(otherEachTime);
      return [];
    }
    const probes = callProbes(this.#task);
    if (probes.length === 1) this.#notScanned.push(noOther);
    const outcomes: ProbeOutcome[] = [];
    for (const probe of probes) {
      const graded = await this.#play(probe, 1, first && { against: first });
      outcomes.push({ name: probe.name, reward: graded.verdict.reward, differs: graded.sameState === false });
    }
    return outcomes;
  }

  /** Where no state is read, calls are all that two plays can differ in, and those of a probe do. */
  async #differ(one: GradedPlay, other: GradedPlay): Promise<boolean> {
    if (one.services === null || other.services === null) return false;
    const exceptions = exceptionsOf(this.#task, this.#options.graders);
    return stateDiffers(one.services, other.services, exceptions, this.#options.signal);
  }

  async #play(play: Play, time: number, how: PlayOptions = {}): Promise<GradedPlay> {
    const graded = await this.#graded(play, how);
    if (how.against) graded.sameState = !(await this.#differ(how.against, graded));
    const { sameState } = graded;
    const { reward, status, tier, duration_ms, error } = graded.verdict;
    const grading = { work: play.name, language: null, time, reward, status, tier, duration_ms, memory_mb: null };
    this.#gradings.push({ ...grading, ...(sameState !== undefined && { same_state: sameState }), error: error?.message ?? null });
    this.#verdicts.push(graded.verdict);
    this.#digest = graded.digest;
    this.#options.onGraded?.(this.#gradings.at(-1) as AdmissionGrading);
    return graded;
  }

  async #graded(play: Play, { past, scans = false }: PlayOptions): Promise<GradedPlay> {
    const [task, backend, options, folder] = [this.#task, this.#backend, this.#options, this.#folder];
    const { signal, graders } = options;
    await using sandbox = await deliveredSandbox(task, backend, options, signal);
    const delivered = await deliveredFiles(task);
    const setUp = await keepSetUp(sandbox, task, delivered, folder, signal);
    const asked = { signal, graders };
    const reach = scans && isIsolated(backend.capabilities.isolation) ? await scanReach(task, sandbox, signal) : null;
    const before = await readServicesBefore(sandbox, task, folder, asked);
    const { trajectory, down, failure } = await played(task, sandbox, play, past, signal);
    await sandbox.freeze("reads");
    const create = (within: AbortSignal) => deliveredSandbox(task, backend, options, within);
    const trial = { task, runs: trajectory.tool_runs ?? [], sandbox, create };
    const findDoing = (questions: readonly UnansweredService[]) => areAgentsDoing(questions, trial, signal);
    if (failure && !(down && (await findDoing([{ server: down.name, service: down.service }]))[0])) throw failure;
    const answers = play.answer === undefined ? [] : [play.answer];
    const services = before && (await readServicesAfter(sandbox, task, before, folder, { end: true, answers, findDoing, ...asked }));
    const work: WorkLayer = await takeWork(sandbox, task, delivered, folder, signal, setUp);
    const context = { task, signal, isolation: backend.capabilities.isolation, ...(graders && { graders }) };
    const verdict = await grade({
      ...context,
      work,
      trajectory,
      ...(services && { services }),
      fresh: freshSandbox(context, backend, { ...options, setUp }),
    });
    return { verdict, digest: sandbox.facts.image_digest, services, reach };
  }
}

/**
 * The record of these calls, as if a model had asked for each. `down`, `failure`: of the relay, after which no call was made.
 * `past`: only calls of these servers are made, from within the sandbox, and the record does not have them.
 */
async function played(task: Task, sandbox: Sandbox, { name, calls }: Play, past: readonly ToolServer[] | undefined, signal: AbortSignal) {
  const servers = past?.map((server) => ({ ...server, service: ownPlace })) ?? task.environment.tools ?? [];
  await using play = await playCalls(servers, sandbox, signal);
  const { relay } = play;
  for (const call of calls) {
    if (past && !relay.servers.includes(call.server)) continue;
    if (!relay.servers.includes(call.server)) throw unknownServer(task, name, call, relay.servers);
    if (relay.failure === null) await playCall(relay, { ...call, arguments: JSON.stringify(call.arguments) });
  }
  const { tool_runs = [], ...told } = await play.trajectory();
  const trajectory: Trajectory = { ...told, tool_runs: past ? [] : tool_runs.map((run) => ({ ...run, unasked: false })) };
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
