/**
 * What `alidade check` does with one task, on the path that rollouts are graded by. The known solution and no change are
 * taken out of a sandbox once and graded several times; then a random edit and each hack probe of the task's languages are
 * graded once. Probes want a container: without one they and the leak scan are left out, and there is no admission.
 */
import { AlidadeError, type ErrorCode, errorCodes } from "../../base/errors.ts";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { overlay } from "../../base/files/file-tree.ts";
import { changesBetween, keepLayer, temporaryLayers, type WorkLayer } from "../../base/files/layer.ts";
import type { AdmissionGrading, AdmissionReason, LeakScan, ReachScan } from "../../base/schema/admission.ts";
import { isIsolated, type Verdict } from "../../base/schema/rollout.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Sandbox, SandboxBackend } from "../../sandboxes/index.ts";
import { plainRules } from "../../sandboxes/network/index.ts";
import { freshSandbox, grade } from "../grade.ts";
import type { OpenSampler } from "../grader.ts";
import { filesAt } from "../hidden-tests.ts";
import { probesFor } from "../probes/index.ts";
import type { Probe, ProbeTarget } from "../probes/probe.ts";
import { asksModels } from "../registry.ts";
import { highestReward } from "../rules/reward-range.ts";
import { canKeep } from "../shared/check-grading.ts";
import { isShared, keepsProcesses } from "../shared/place-to-grade.ts";
import { runGoldScript } from "../work/gold.ts";
import { placeWork } from "../work/work.ts";
import { type Deed, gradeThere } from "./grade-there.ts";
import { type HiddenFiles, hiddenFiles } from "./hidden-files.ts";
import { hasSolution, type KnownSolution, knownSolution, solvedAt } from "./known-solution.ts";
import { leakScan } from "./leak-scan.ts";
import { measuringMemory } from "./peak-memory.ts";
import { filesOfWork, probeTargets } from "./probe-targets.ts";
import { randomEdit } from "./random-edit.ts";
import { baselineOf, reasonsAgainst } from "./reasons-against.ts";
import { type AttemptOptions, type TakenWork, takenWork } from "./taken-work.ts";
import { linesOf, namesOf, outputsOf, type TellingLines } from "./telling-lines.ts";
import { whyNotApart, withWorkTogether } from "./work-together.ts";

export type ExaminationOptions = AttemptOptions & {
  /** Gradings of the known solution and of no change, each. */
  times: number;
  /** Says which random edit it is. */
  word: string;
  /** Default: all. */
  probes?: readonly Probe[];
  /** For graders that ask models. */
  openSampler?: OpenSampler;
  onGraded?: (grading: AdmissionGrading) => void;
};

export type Examination = {
  gradings: AdmissionGrading[];
  /** Those that say why a task does not hold, in the order of `gradings`: evidence for a person. */
  verdicts: Verdict[];
  /** null: it was not made. */
  leak_scan: LeakScan | null;
  /** Present where the known solution is calls of tools. */
  reach?: ReachScan;
  /** [] where the task holds. */
  reasons: AdmissionReason[];
  baseline: number | null;
  image_digest: string | null;
  /** Whether all was looked at. False without a container. */
  whole: boolean;
};

/** Throws what the infrastructure did: it says nothing of the task. */
export async function examineTask(task: Task, backend: SandboxBackend, options: ExaminationOptions): Promise<Examination> {
  await using kept = await temporaryLayers();
  return await new TaskExamination(task, backend, options, kept.folder).run();
}

/** What is read of a sandbox as an agent gets it. */
type AgentView = {
  /** Files that the known solution changes. */
  base: TreeFile[];
  edit: { base: TreeFile[]; files: TreeFile[] };
};

/** Returns a reason against the task that no grading could change, so it is not graded at all. */
function whyNever(task: Task): AdmissionReason | null {
  if (!hasSolution(task))
    return {
      code: "no_solution",
      message: "it has no gold_patch, gold_files, gold_script or gold_calls: nothing shows that it can be solved",
    };
  const message = "it is graded in the agent's own sandbox (grading: shared), where what an agent leaves can pay: grade it fresh";
  return isShared(task) && !keepsProcesses(task) ? { code: "shared_grading", message } : null;
}

/** Returns reasons against the place of grading. The task is graded all the same, to show what hacks earn there. */
function whyNotThere(task: Task): AdmissionReason[] {
  const message =
    "it is graded in the agent's own sandbox while its processes live (keep_processes), where what an agent leaves can pay: write what starts its servers into the tests, and grade it fresh";
  return keepsProcesses(task) ? [{ code: "shared_grading", message }] : [];
}

/** A work, and the deed that leaves it in a sandbox, for tasks that are graded in the agent's own. */
type GradedWork = TakenWork & { deed: Deed };

const nothing: Deed = async () => undefined;

class TaskExamination {
  readonly #task: Task;
  readonly #backend: SandboxBackend;
  readonly #options: ExaminationOptions;
  readonly #folder: string;
  readonly #gradings: AdmissionGrading[] = [];
  readonly #verdicts: Verdict[] = [];
  #scan: LeakScan | null = null;
  #digest: string | null = null;
  /** Why the known solution earns too little, as further gradings of it have shown. */
  #causes: AdmissionReason[] = [];

  constructor(task: Task, backend: SandboxBackend, options: ExaminationOptions, folder: string) {
    this.#task = task;
    this.#backend = backend;
    this.#options = options;
    this.#folder = folder;
  }

  async run(): Promise<Examination> {
    const isIsolating = isIsolated(this.#backend.capabilities.isolation);
    if (whyNever(this.#task) !== null) return this.#end(isIsolating);
    const { seen: hidden, ...known } = await this.#solution();
    const solved = await filesOfWork(known.solution, this.#task.environment.workdir);
    const { acted: seen, ...untouched } = await this.#taken((sandbox) => this.#look(sandbox, solved, hidden));
    const idle = { ...untouched, deed: nothing };
    const placed = await this.#taken((sandbox, step) => this.#place(sandbox, solvedAt(known, step)));
    const gold = { ...placed, deed: this.#solving(known.solution) };
    for (let time = 1; time <= this.#options.times; time++) {
      await this.#grade("gold", null, time, gold);
      // The task's own files were graded to find this, so other works would give the same.
      if (this.#verdicts.at(-1)?.error?.code === "verifier_unavailable") return this.#end(isIsolating);
      await this.#grade("no-op", null, time, idle);
    }
    await this.#askTogether(gold, idle);
    if (isIsolating) await this.#askKept(gold);
    const edited = await this.#workOf(seen.edit.base, seen.edit.files);
    await this.#grade("random-edit", null, 1, await this.#with(idle, edited));
    if (!isIsolating) return this.#end(false);
    // Probes show nothing where the known solution earns too little, or no change too much.
    if (reasonsAgainst(this.#task, this.#gradings, this.#scan).some(({ code }) => code !== "leak")) return this.#end(true);
    const told = { workdir: this.#task.environment.workdir, instruction: instructionsOf(this.#task) };
    await this.#probe(probeTargets(told, solved, seen.base, hidden), seen.base, idle);
    return this.#end(true);
  }

  #end(whole: boolean): Examination {
    const never = whyNever(this.#task);
    const found = () => [...reasonsAgainst(this.#task, this.#gradings, this.#scan), ...this.#causes];
    const reasons = never === null ? [...found(), ...whyNotThere(this.#task)] : [never];
    return {
      gradings: this.#gradings,
      verdicts: this.#verdicts,
      leak_scan: this.#scan,
      reasons,
      baseline: baselineOf(this.#gradings),
      image_digest: this.#digest,
      whole,
    };
  }

  /** Where tests apart from the work do not tell the known solution from nothing: would they in one process with it? */
  async #askTogether(gold: GradedWork, idle: GradedWork): Promise<void> {
    const { graders } = this.#options;
    if (!saysNothing(reasonsAgainst(this.#task, this.#gradings, null))) return;
    const grader = withWorkTogether(this.#task.grader, graders);
    if (grader === null) return;
    const rewardOf = async (work: GradedWork, name: string): Promise<number | null> =>
      (await this.#verdictOn({ ...this.#task, grader }, work, `${name} together`)).verdict.reward;
    const [full, none] = [await rewardOf(gold, "gold"), await rewardOf(idle, "no-op")];
    if (full !== highestReward(this.#task) || none === null || none >= full) return;
    this.#causes = [notApart(this.#verdicts[0]?.evidence ?? {}, full, none)];
  }

  /**
   * Asks whether a solution that earns too little earns all while its processes live. Also grades it in its own sandbox without
   * processes: if that is enough, the processes are not the cause.
   */
  async #askKept(gold: GradedWork): Promise<void> {
    const { graders } = this.#options;
    if (this.#task.gold_script === undefined || isShared(this.#task) || !canKeep(this.#task, graders)) return;
    if (!reasonsAgainst(this.#task, this.#gradings, null).some(({ code }) => code === "gold_not_full" || code === "ungraded")) return;
    const rewardOf = async (place: Partial<Task>): Promise<number | null> =>
      (await this.#verdictOn({ ...this.#task, ...place }, gold, "gold in its own sandbox")).verdict.reward;
    const full = highestReward(this.#task);
    if ((await rewardOf({ keep_processes: true })) !== full) return;
    const ended = await rewardOf({ grading: "shared" });
    if (ended !== full) this.#causes.push(needsProcesses(full, ended));
  }

  /** Runs the solution's script if there is one, because only a script starts what the solution leaves running. */
  #solving(solution: WorkLayer): Deed {
    const { gold_script: script } = this.#task;
    if (script === undefined) return (sandbox) => this.#place(sandbox, solution);
    const { signal, rules = plainRules() } = this.#options;
    return (sandbox) => runGoldScript(this.#task, script, sandbox, { signal, rules });
  }

  #solution(): Promise<KnownSolution & { seen: HiddenFiles }> {
    const look = (sandbox: Sandbox) => hiddenFiles(this.#task.grader, sandbox, this.#options.graders);
    return knownSolution(this.#task, this.#backend, this.#options, this.#folder, look);
  }

  async #look(sandbox: Sandbox, solved: TreeFile[], hidden: HiddenFiles): Promise<AgentView> {
    const { signal, word } = this.#options;
    const base = await filesAt(
      sandbox,
      solved.map(({ path }) => path),
    );
    const tested = await filesAt(sandbox, hidden.inWorkdir);
    const outputs = outputsOf(hidden.expected, instructionsOf(this.#task));
    const telling: TellingLines[] = [
      linesOf("solution", base, solved),
      linesOf("tests", [...tested, ...base], hidden.files),
      namesOf(hidden.failing, [...tested, ...base]),
      outputs,
    ];
    this.#digest = sandbox.facts.image_digest;
    if (isIsolated(this.#backend.capabilities.isolation)) {
      this.#scan = await leakScan(sandbox, this.#task.environment.workdir, telling, this.#backend.images, signal);
      if (hidden.expected.length > 0 && outputs.lines.length === 0) this.#scan.not_scanned.push(untelling);
    }
    return { base, edit: await randomEdit(word, sandbox, signal) };
  }

  async #probe(targets: ProbeTarget[], base: TreeFile[], idle: GradedWork): Promise<void> {
    const [first] = targets as [ProbeTarget];
    const languages = targets.flatMap(({ language }) => language ?? []);
    for (const { probe, language } of probesFor(languages, this.#options.probes)) {
      const target = targets.find((one) => one.language === language) ?? first;
      const hack = await this.#hack(probe, target, base, idle);
      if (hack !== null) await this.#grade(probe.name, language, 1, hack);
    }
  }

  /** Files alone need no sandbox of an agent. null: there is nothing to try. */
  async #hack(probe: Probe, target: ProbeTarget, base: TreeFile[], idle: GradedWork): Promise<GradedWork | null> {
    if (!isIsolated(this.#backend.capabilities.isolation)) throw unsafe();
    const files = probe.files?.(target) ?? [];
    if (probe.script === undefined && files.length === 0) return null;
    if (probe.script === undefined) return this.#with(idle, await this.#workOf(base, files));
    const script = probe.script(target);
    const deed: Deed = async (sandbox) => {
      assertIsolated(sandbox);
      await sandbox.writeFiles(files);
      await sandbox.exec(["sh", "-c", script], { timeout_ms: scriptMs, signal: this.#options.signal });
    };
    return { ...(keepsProcesses(this.#task) ? idle : await this.#taken(deed)), deed };
  }

  /** What would be taken out where this alone was done. In a task with steps it lies beside what each step brings along. */
  async #with(idle: GradedWork, work: WorkLayer): Promise<GradedWork> {
    const deed: Deed = (sandbox) => this.#place(sandbox, work);
    return this.#task.steps ? { ...(await this.#taken(deed)), deed } : { ...idle, work, deed };
  }

  #place(sandbox: Sandbox, work: WorkLayer): Promise<void> {
    return placeWork(sandbox, this.#task, work, {}, this.#options.signal);
  }

  #taken<T>(act: (sandbox: Sandbox, step: number) => Promise<T>): Promise<TakenWork & { acted: T }> {
    return takenWork(this.#task, this.#backend, act, this.#options, this.#folder);
  }

  #workOf(base: TreeFile[], files: TreeFile[]): Promise<WorkLayer> {
    return keepLayer(changesBetween(base, overlay(base, files), this.#task.environment.workdir), this.#folder);
  }

  async #grade(work: string, language: string | null, time: number, taken: GradedWork): Promise<void> {
    const task = work === "gold" || work === "no-op" ? this.#task : this.#withShortTime();
    const { verdict, peak_mb } = await this.#verdictOn(task, taken, `${work} ${time}`);
    const { reward, status, tier, duration_ms, error } = verdict;
    const [memory_mb, said] = [work === "gold" ? peak_mb : null, error?.message ?? null];
    const grading = { work, language, time, reward, status, tier, duration_ms, memory_mb, error: said };
    this.#gradings.push(grading);
    this.#verdicts.push(verdict);
    this.#options.onGraded?.(grading);
  }

  /** Throws what the infrastructure did. */
  async #verdictOn(
    task: Task,
    { setUp, deed, ...works }: GradedWork,
    title: string,
  ): Promise<{ verdict: Verdict; peak_mb: number | null }> {
    const { signal, graders, openSampler } = this.#options;
    await using sampler = asksModels(task.grader, graders) ? await openSampler?.(task.task_id, title) : undefined;
    if (isShared(task)) {
      const verdict = await gradeThere(task, this.#backend, deed, { ...this.#options, sampler }, this.#folder);
      assertMeasured(verdict);
      return { verdict, peak_mb: null };
    }
    const context = { task, signal, ...(graders && { graders }), ...(sampler && { sampler }) };
    const { fresh, peak_mb } = measuringMemory(freshSandbox(context, this.#backend, { ...this.#options, setUp }));
    const verdict = await grade({ ...context, ...works, fresh });
    assertMeasured(verdict);
    return { verdict, peak_mb: peak_mb() };
  }

  /** A hack that never ends must not take the whole time of a task that is graded in a second. */
  #withShortTime(): Task {
    const slowest = Math.max(0, ...this.#gradings.filter(({ work }) => work === "gold").map(({ duration_ms }) => duration_ms));
    const seconds = Math.max(leastSeconds, Math.ceil((4 * slowest) / 1000));
    const { limits } = this.#task;
    return { ...this.#task, limits: { ...limits, grade_seconds: Math.min(limits.grade_seconds, seconds) } };
  }
}

/** No solution is told from none, whatever the hacks and the leaks may be. */
function saysNothing(reasons: readonly AdmissionReason[]): boolean {
  return reasons.some(({ code }) => code === "gold_not_full" || code === "no_change_pays" || code === "ungraded");
}

/** `evidence`: that of the known solution's first grading. */
function notApart(evidence: Record<string, unknown>, gold: number, none: number): AdmissionReason {
  const said = whyNotApart(evidence);
  const message = `its tests cannot run apart from the work${said === null ? "" : ` (${said})`}, and in one process with it the known solution earns ${gold} and no change ${none}: change the tests, or write work_runs: together, at tier T1, where code of the work can change what the tests say`;
  return { code: "not_apart", message };
}

function needsProcesses(full: number, ended: number | null): AdmissionReason {
  const message = `the known solution earns ${full} while the processes that it leaves live, and ${ended ?? "nothing"} where they have ended: write what starts them into the tests, or say keep_processes = true ([metadata.alidade] of a task.toml; --keep-processes), at tier T0, where an agent can change its grade`;
  return { code: "needs_processes", message };
}

const untelling = "expected outputs: they are too short to be told from other texts, or stand in the instruction";

function instructionsOf({ instruction, steps = [] }: Task): string {
  return [instruction, ...steps.map((step) => step.instruction)].join("\n");
}

/** A hack's own commands copy a few files. */
const scriptMs = 60_000;
const leastSeconds = 15;

/** Some probes write to what other processes hold: outside of a container those are this machine's. */
function assertIsolated({ facts }: Sandbox): void {
  if (!isIsolated(facts.isolation)) throw unsafe();
}

function unsafe(): AlidadeError {
  return new AlidadeError("unsafe_host_refused", "hack probes run in containers only: use --sandbox docker");
}

/** A failure of the machine is no property of the task. */
function assertMeasured({ status, error }: Verdict): void {
  if (status !== "infra_error" && status !== "cancelled") return;
  const code = error !== null && Object.hasOwn(errorCodes, error.code) ? (error.code as ErrorCode) : "sandbox_error";
  throw new AlidadeError(code, error?.message ?? `a grading ended as ${status}`);
}
