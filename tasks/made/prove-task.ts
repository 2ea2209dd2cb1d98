/** Which tests a change makes pass, by running them where a grader would: after it, before it, and after it once more. */
import { applyPatch } from "../../base/files/apply-patch.ts";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { changesBetween, keepLayer, temporaryLayers, type WorkLayer } from "../../base/files/layer.ts";
import type { Task } from "../../base/schema/task.ts";
import { freshSandbox, type SandboxOwner, TestsSpec, testWork } from "../../graders/index.ts";
import type { SandboxBackend } from "../../sandboxes/index.ts";
import type { RequiredTests } from "./draft-task.ts";
import { NoTask } from "./no-task.ts";

export type Proving = { backend: Pick<SandboxBackend, "create">; owner: SandboxOwner; signal: AbortSignal };

/** `base`: the files that the task delivers. Throws NoTask for a change that shows in no test, or not in the same ones twice. */
export async function proveTask(task: Task, base: TreeFile[], proving: Proving): Promise<RequiredTests> {
  await using layers = await temporaryLayers();
  const { changed, untouched } = await worksOf(task, base, layers.folder);
  const after = await passedWith(task, changed, proving);
  if (after.problem !== null) throw new NoTask("no_report", after.problem);
  const { passed: before } = await passedWith(task, untouched, proving);
  const required = requiredOf(before, after.passed);
  if (required.fail_to_pass.length === 0) throw new NoTask("no_fail_to_pass", `${after.passed.size} tests pass after it`);
  await assertAgain(task, changed, { before, required }, proving);
  return required;
}

/** Throws NoTask where the tests say something else about the same work. */
async function assertAgain(
  task: Task,
  changed: WorkLayer,
  { before, required }: { before: ReadonlySet<string>; required: RequiredTests },
  proving: Proving,
): Promise<void> {
  const again = requiredOf(before, (await passedWith(task, changed, proving)).passed);
  const differing = differingNames(required, again);
  if (differing.length > 0) throw new NoTask("flaky", differing.slice(0, 5).join(", "));
}

/**
 * Those of the required tests that say the same where they run apart from the work, as `task` has them run. null: one that
 * fails before the change does not, so that the change would not be tested there as its authors test it. Throws NoTask where
 * they say something else the second time.
 */
export async function provenApart(task: Task, base: TreeFile[], required: RequiredTests, proving: Proving): Promise<RequiredTests | null> {
  await using layers = await temporaryLayers();
  const { changed, untouched } = await worksOf(task, base, layers.folder);
  const { passed: after } = await passedWith(task, changed, proving);
  if (!required.fail_to_pass.every((name) => after.has(name))) return null;
  const { passed: before } = await passedWith(task, untouched, proving);
  const found = requiredOf(before, after);
  const isFound = { fail: new Set(found.fail_to_pass), pass: new Set(found.pass_to_pass) };
  if (!required.fail_to_pass.every((name) => isFound.fail.has(name))) return null;
  await assertAgain(task, changed, { before, required: found }, proving);
  return { fail_to_pass: required.fail_to_pass, pass_to_pass: required.pass_to_pass.filter((name) => isFound.pass.has(name)) };
}

async function worksOf(task: Task, base: TreeFile[], folder: string): Promise<{ changed: WorkLayer; untouched: WorkLayer }> {
  const gold = applyPatch(base, task.gold_patch ?? "");
  const changed = await keepLayer(changesBetween(base, gold, task.environment.workdir), folder);
  return { changed, untouched: await keepLayer(changesBetween([], [], ""), folder) };
}

/** As a grader counts them: in a report that is not complete no test has passed. */
type Passed = { passed: Set<string>; problem: string | null };

async function passedWith(task: Task, work: WorkLayer, { backend, owner, signal }: Proving): Promise<Passed> {
  await using sandbox = await freshSandbox({ task, signal }, backend, owner)();
  const { result, report } = await testWork(TestsSpec.parse(task.grader), { task, work, signal }, sandbox);
  if (result.timed_out) throw new NoTask("too_slow", `they had ${task.limits.grade_seconds} seconds`);
  if (result.out_of_memory) throw new NoTask("too_slow", `they had ${task.limits.memory_mb} MiB`);
  const printed = `${result.stdout}${result.stderr}`.trim().slice(-outputTail);
  if (!report.complete)
    return {
      passed: new Set(),
      problem: `${report.problem ?? "no report"}; exit code ${result.exit_code}; ${printed || "nothing was printed"}`,
    };
  return { passed: new Set([...report.outcomes].filter(([, outcome]) => outcome === "passed").map(([name]) => name)), problem: null };
}

/** What a person needs to see a command that is missing or an import that fails. */
const outputTail = 500;

export function requiredOf(before: ReadonlySet<string>, after: ReadonlySet<string>): RequiredTests {
  const names = [...after];
  return { fail_to_pass: names.filter((name) => !before.has(name)), pass_to_pass: names.filter((name) => before.has(name)) };
}

function differingNames(one: RequiredTests, other: RequiredTests): string[] {
  const [first, second] = [one, other].map((lists) => new Set([...lists.fail_to_pass, ...lists.pass_to_pass]));
  return [...(first ?? new Set<string>()).symmetricDifference(second ?? new Set<string>())];
}
