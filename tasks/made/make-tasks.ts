/** Tries changes one after the other, and keeps a folder for each that makes a task. */
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { AlidadeError } from "../../base/errors.ts";
import { lockFile } from "../../base/host/lock-file.ts";
import { Task } from "../../base/schema/task.ts";
import type { SandboxBackend } from "../../sandboxes/index.ts";
import { native } from "../native.ts";
import { apartCommand } from "./apart-command.ts";
import { type HowTested, type RequiredTests, writeTaskFile, writeTrees } from "./draft-task.ts";
import type { CandidateFix, Fix } from "./fix.ts";
import { NoTask } from "./no-task.ts";
import { provenApart, proveTask } from "./prove-task.ts";
import { type TriedFix, TriedFixes } from "./tried-fixes.ts";

export type MakeOptions = {
  /** Where tasks are written; what lies there of an earlier run is gone on from. */
  out: string;
  /** The repository or the package, in words that are the same the next time. */
  source: string;
  how: HowTested;
  /** Tasks in `out` after which no more changes are tried; left out: all are. */
  limit?: number | undefined;
  backend: Pick<SandboxBackend, "create" | "prepare">;
  /** Labels of the sandboxes, for the reaper. */
  owner: { run_id: string; owner: string };
  signal: AbortSignal;
  progress: (line: string) => void;
};

/** Not beside the tasks: a folder with a task.yaml there is one. */
const drafts = ".drafts";

/** All that was ever tried for this folder. What the machine fails at ends it and is not remembered. */
export async function makeTasks(candidates: AsyncIterable<CandidateFix>, options: MakeOptions): Promise<TriedFix[]> {
  const { out, source, how, limit = Number.POSITIVE_INFINITY, signal } = options;
  await mkdir(out, { recursive: true });
  await using _lock = await lockFile(join(out, ".lock"), { signal, onBusy: refuseBusy(out) });
  const tried = await TriedFixes.open(out, { source, ...how, tests: [...how.tests] });
  await rm(join(out, drafts), { recursive: true, force: true });
  if (tried.kept >= limit) return tried.all;
  await prepareImage(options);
  for await (const candidate of candidates) {
    if (tried.has(candidate.key)) continue;
    const one = await untilStopped(signal, () => tryOne(candidate, options));
    await tried.add(one);
    options.progress(lineOf(one));
    if (tried.kept >= limit) break;
  }
  await rm(join(out, drafts), { recursive: true, force: true });
  return tried.all;
}

/** What fails because the user stopped it says so. */
async function untilStopped<T>(signal: AbortSignal, body: () => Promise<T>): Promise<T> {
  try {
    signal.throwIfAborted();
    return await body();
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new AlidadeError("cancelled", "stopped: the same command goes on with what was not tried", { cause: error });
  }
}

function refuseBusy(out: string): (holder: string) => void {
  return (holder) => {
    throw new AlidadeError("config_invalid", `${out} is written by ${holder}: wait for it, or name another folder with --out`, {
      param: "out",
    });
  };
}

async function prepareImage({ how: { image }, backend, owner, signal, progress }: MakeOptions): Promise<void> {
  const { environment } = Task.parse({ task_id: "image", instruction: "none", environment: { image }, grader: { kind: "tests" } });
  await backend.prepare([environment], { signal, progress, user: { run_id: owner.run_id, tasks: ["from changes"] } });
}

async function tryOne(candidate: CandidateFix, options: MakeOptions): Promise<TriedFix> {
  const { key, title } = candidate;
  try {
    const fix = await candidate.fix();
    const { required, apart } = await keepTask(fix, options);
    const [fail_to_pass, pass_to_pass] = [required.fail_to_pass.length, required.pass_to_pass.length];
    return { key, title, state: "kept", task_id: fix.task_id, fail_to_pass, pass_to_pass, ...(apart && { work_runs: "apart" }) };
  } catch (error) {
    const { reason, message: detail } = asNoTask(error);
    return { key, title, state: "dropped", reason, detail };
  }
}

/** What the change itself is at fault for. Throws all else. */
function asNoTask(error: unknown): NoTask {
  if (error instanceof NoTask) return error;
  if (!(error instanceof AlidadeError)) throw error;
  if (error.code === "task_invalid") return new NoTask("not_text", error.message);
  if (error.code === "output_too_large") return new NoTask("too_large", error.message);
  if (error.owner === "policy") return new NoTask("not_gradable", error.message);
  throw error;
}

/** `apart`: the runner's command, where the tests run apart from the work. */
type KeptTask = { required: RequiredTests; apart?: string[] };

/** Out of the work's reach where the tests can be: then nothing that the work prints or replaces counts. */
async function keptApart(fix: Fix, draft: string, required: RequiredTests, options: MakeOptions): Promise<KeptTask> {
  const apart = apartCommand(options.how);
  if (apart === null) return { required };
  await writeTaskFile(draft, fix, options.how, required, apart);
  const proven = await provenApart(await loadDraft(draft, fix, options.signal), fix.base, required, options).catch((error: unknown) => {
    if (error instanceof NoTask) return null;
    throw error;
  });
  return proven === null ? { required } : { required: proven, apart };
}

/** The folder appears whole: it is written and proven elsewhere, and renamed. */
async function keepTask(fix: Fix, options: MakeOptions): Promise<KeptTask> {
  const { out, how, signal } = options;
  await mkdir(join(out, drafts), { recursive: true });
  const draft = await mkdtemp(join(out, drafts, `${fix.task_id}-`));
  try {
    await writeTrees(draft, fix);
    await writeTaskFile(draft, fix, how, { fail_to_pass: [], pass_to_pass: [] });
    const required = await proveTask(await loadDraft(draft, fix, signal), fix.base, options);
    const kept = await keptApart(fix, draft, required, options);
    await writeTaskFile(draft, fix, how, kept.required, kept.apart);
    await loadDraft(draft, fix, signal);
    const target = join(out, fix.task_id);
    // An earlier run may have ended before it remembered the change.
    await rm(target, { recursive: true, force: true });
    await rename(draft, target);
    return kept;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** As a run would load it. YAML has characters that do not come back: such a task is none. */
async function loadDraft(draft: string, fix: Fix, signal: AbortSignal): Promise<Task> {
  const [task] = await native.load(draft, { signal });
  if (task?.gold_patch !== fix.gold) throw new NoTask("not_text", `${basename(draft)} does not read as it was written`);
  return task;
}

function lineOf(one: TriedFix): string {
  const name = `${one.key.slice(0, 12)} ${one.title.slice(0, 60)}`;
  return one.state === "dropped"
    ? `${name}: ${one.detail}`
    : `${name}: kept, with ${one.fail_to_pass} tests that fail before it and ${one.pass_to_pass} that pass before and after${one.work_runs === undefined ? "" : ", apart from the work (T2)"}`;
}
