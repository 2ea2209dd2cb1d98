/**
 * Grades as Harbor's verifier does. It runs `/tests/test.sh`, ignores the exit code, and reads the reward from
 * `/logs/verifier/reward.json` or `reward.txt`. The tests run in a fresh sandbox with the agent's layer, or in an image of their
 * own, to which declared artifacts cross. Tests of Terminal-Bench run in the same way; their output gives the reward.
 */
import { posix } from "node:path";
import { z } from "zod";
import { AlidadeError, asAlidadeError } from "../base/errors.ts";
import { overlay, readFolder, type TreeFile } from "../base/files/file-tree.ts";
import { isIsolated, type Verdict } from "../base/schema/rollout.ts";
import { Environment, type Task } from "../base/schema/task.ts";
import type { ExecResult, Sandbox } from "../sandboxes/index.ts";
import { envInside } from "../sandboxes/index.ts";
import { commandClock } from "./fault/clock.ts";
import type { GradeContext, Grader, GradingSandbox } from "./grader.ts";
import { collectArtifacts } from "./harbor/artifacts.ts";
import { fetchingScripts } from "./harbor/fetching-tools.ts";
import { type HeldBack, heldBack } from "./harbor/held-back.ts";
import { readRewards } from "./harbor/reward-files.ts";
import { chosenReward, RewardRule, weightOf } from "./harbor/reward-rule.ts";
import { readTerminal, type TerminalParserName, terminalParserNames } from "./harbor/terminal-parsers.ts";
import { unfetched } from "./harbor/unfetched.ts";
import { tierIn, tierWhere } from "./shared/place-to-grade.ts";
import { placeWork, workEvidence } from "./work/work.ts";

const User = z.enum(["root", "agent"]).default("root");

/** A field that is left out is the task's. */
const OwnLimits = z.strictObject({
  cpus: z.number().positive().optional(),
  memory_mb: z.number().int().positive().optional(),
  disk_mb: z.number().int().positive().optional(),
});

export const HarborSpec = z.strictObject({
  kind: z.literal("harbor"),
  /** Folder that is copied to /tests; null: the image of `verifier` has them. */
  tests: z.string().nullable(),
  /** Folder that is copied over it: the tests of a step. */
  step_tests: z.string().nullable().default(null),
  env: z.record(z.string(), z.string()).default({}),
  /** The user who runs the tests. */
  user: User,
  /** False: only the verifier's own places are left out of the agent's layer. */
  hold_back: z.boolean().default(true),
  /** How one reward is made of several numbers; null: the number named `reward`, or the only one. */
  reward: RewardRule.nullable().default(null),
  /** The parser of Terminal-Bench that reads what `run-tests.sh` prints; null: `test.sh` is run and leaves a reward file. */
  printed: z.enum(terminalParserNames).nullable().default(null),
  /** A container of the verifier's own; null: a fresh one of the task's environment. */
  verifier: z.strictObject({ environment: Environment, limits: OwnLimits }).nullable().default(null),
  /** What crosses to `verifier`. */
  artifacts: z.array(z.strictObject({ source: z.string().startsWith("/"), exclude: z.array(z.string()).default([]) })).default([]),
  /** Run before artifacts are read, in a fresh sandbox with the agent's layer. */
  collect: z
    .array(
      z.strictObject({
        command: z.string().min(1),
        timeout_seconds: z.number().positive().default(60),
        user: User.nullable().default(null),
      }),
    )
    .default([]),
});
export type HarborSpec = z.infer<typeof HarborSpec>;

const tests = "/tests";
const logs = "/logs/verifier";
/** For a person; a record must stay readable. */
const evidenceOutput = 4_000;
const evidencePaths = 50;

export const harbor: Grader<HarborSpec> = {
  name: "harbor",
  title:
    "Harbor's verifier: tests/test.sh, which leaves /logs/verifier/reward.txt or reward.json. Terminal-Bench's: run-tests.sh prints results",
  spec: HarborSpec,
  folders: ["tests", "step_tests"],
  environments: ({ verifier }) => (verifier ? [verifier.environment] : []),
  version: "4",
  tier: ({ verifier }, task) => (verifier ? "T1" : tierWhere(task, "T1")),

  async grade(spec, context) {
    const started = performance.now();
    await using place = await verifierSandbox(spec, context);
    const { sandbox, environment } = place;
    const files = await testFiles(spec);
    const result = await runTests(spec, files, context, place);
    await sandbox.freeze();
    const lacks = unfetched({ ...fetchingScripts(files), ...signsOf(result, place) });
    const work = workEvidence(context.work, context.task);
    const rest = {
      // The tests may run the work.
      tier: tierIn(sandbox, "T1"),
      isolation: sandbox.facts.isolation,
      grader: spec.printed === null ? "harbor" : `harbor/${spec.printed}`,
      evidence: {
        work_sha256: work.work_sha256,
        no_change: work.no_change,
        clock: commandClock(result, context.task.limits),
        exit_code: result.exit_code,
        dropped_bytes: result.dropped_bytes,
        held_back: place.held.slice(0, evidencePaths),
        verifier_image: environment === context.task.environment ? null : sandbox.facts.image,
        output_tail: (result.stdout + result.stderr).slice(-evidenceOutput),
        ...(lacks && { unfetched: lacks }),
      },
      duration_ms: performance.now() - started,
    } as const;
    if (result.timed_out)
      return ungraded(
        rest,
        new AlidadeError("grader_timeout", `tests/${scriptOf(spec)} was not finished after ${context.task.limits.grade_seconds} seconds`),
      );
    try {
      return spec.printed === null ? graded(rest, await sandbox.readFiles(logs), spec.reward) : gradedAsPrinted(rest, spec.printed, result);
    } catch (error) {
      const failure = asAlidadeError(error, "grader_error");
      if (failure.code !== "grader_error") throw failure;
      return ungraded(rest, failure);
    }
  },
};

type VerdictFrame = Omit<Verdict, "reward" | "components" | "status" | "error">;

/** Throws `grader_error` if the files have no numbers. All numbers are components, also if none of them is the reward. */
function graded(rest: VerdictFrame, files: TreeFile[], rule: RewardRule | null): Verdict {
  const { file, values, disagree } = readRewards(files);
  const components = Object.fromEntries([...values].map(([name, value]) => [name, { value, weight: weightOf(name, rule) }]));
  try {
    const { reward, formula } = chosenReward(values, rule);
    const evidence = { ...rest.evidence, reward_file: file, reward_files_disagree: disagree(reward) };
    return { ...rest, evidence, reward, components, ...(formula !== null && { formula }), status: "graded", error: null };
  } catch (error) {
    return { ...ungraded(rest, asAlidadeError(error, "grader_error")), components };
  }
}

/** A person reads these names; the record must stay readable. */
const evidenceNames = 50;

/** Throws `grader_error` if the output reports on no test. */
function gradedAsPrinted(rest: VerdictFrame, parser: TerminalParserName, { stdout, dropped_bytes }: ExecResult): Verdict {
  // The lost part may hold a failed test.
  if (dropped_bytes > 0)
    throw new AlidadeError("grader_error", `the tests printed ${dropped_bytes} bytes more than are kept (limits.output_bytes)`);
  const results = readTerminal(parser, stdout);
  const failed = [...results].flatMap(([name, isPassed]) => (isPassed ? [] : [name.slice(0, 200)]));
  const evidence = { ...rest.evidence, tests: results.size, failed_count: failed.length, failed: failed.slice(0, evidenceNames) };
  // The share is only shown. The reward is all or nothing, as in Terminal-Bench.
  const components = { tests: { value: 1 - failed.length / results.size, weight: 0 } };
  return { ...rest, evidence, reward: failed.length === 0 ? 1 : 0, components, status: "graded", error: null };
}

function ungraded(rest: VerdictFrame, { code, message }: AlidadeError): Verdict {
  const status = code === "grader_timeout" ? "grader_timeout" : "grader_error";
  return { ...rest, reward: null, components: {}, status, error: { code, message, status: null } };
}

function signsOf({ stdout, stderr }: ExecResult, { sandbox, environment }: Place) {
  const refusals = sandbox.network?.use().refusals.filter(({ phase }) => phase === "grading") ?? [];
  return { output: `${stdout}\n${stderr}`, refusals, access: environment.grading_network };
}

/** The place where the tests run. `held`: paths of the work that were held back. */
type Place = AsyncDisposable & { sandbox: GradingSandbox; environment: Environment; held: string[] };

async function verifierSandbox(spec: HarborSpec, context: GradeContext): Promise<Place> {
  const { task, fresh, lend, signal } = context;
  if (lend !== undefined && spec.verifier === null) {
    const sandbox = assertOwnRoot(await lend());
    await runHooks(spec, task, sandbox, signal);
    return { sandbox, environment: task.environment, held: [], [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose]() };
  }
  const environment = spec.verifier?.environment ?? withUser(task.environment, spec.user);
  const { cpus, memory_mb, disk_mb } = { ...task.limits, ...spec.verifier?.limits };
  const limits = { ...task.limits, cpus, memory_mb, disk_mb };
  await using scope = new AsyncDisposableStack();
  const sandbox = assertOwnRoot(scope.use(await fresh({ environment, limits })));
  const held = spec.verifier ? await bringArtifacts(spec, context, sandbox) : await bringWork(spec, context, sandbox);
  const release = scope.move();
  return { sandbox, environment, held, [Symbol.asyncDispose]: () => release.disposeAsync() };
}

/** Returns the environment with the tests' user, if that is not root: the work then belongs to that user. */
function withUser(environment: Environment, user: HarborSpec["user"]): Environment {
  return user === "agent" ? { ...environment, user } : environment;
}

async function bringWork(spec: HarborSpec, { task, work, signal }: GradeContext, sandbox: Sandbox): Promise<string[]> {
  const held = await heldBack(sandbox, spec.hold_back, signal);
  await placeWork(sandbox, task, work, { heldBack: held.isHeld }, signal);
  await runHooks(spec, task, sandbox, signal);
  return held.of(work.changes);
}

/** Reads artifacts from a sandbox of the task with the work in it, because a part of them may lie in the image. */
async function bringArtifacts(spec: HarborSpec, { task, work, fresh, signal }: GradeContext, verifier: Sandbox): Promise<string[]> {
  await using source = await fresh();
  const held: HeldBack = await heldBack(source, spec.hold_back, signal);
  await placeWork(source, task, work, { heldBack: held.isHeld }, signal);
  await runHooks(spec, task, source, signal);
  for (const { folder, files } of await collectArtifacts(source, spec.artifacts, signal)) await verifier.writeFiles(files, folder);
  return held.of(work.changes);
}

/** A hook that fails collects nothing, as in Harbor. The tests then say what is missing. */
async function runHooks({ collect }: HarborSpec, { environment }: Task, sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  for (const { command, timeout_seconds, user } of collect)
    await sandbox.exec(["sh", "-c", command], {
      ...(user === "root" && { user }),
      env: envInside(environment, sandbox),
      timeout_ms: timeout_seconds * 1_000,
      signal,
    });
}

/** Removes rewards that an image may hold, and makes its tests executable. As in Harbor, all users may write to the logs. */
const prepare = `mkdir -p -m 777 ${logs} && rm -rf -- ${logs}/reward.txt ${logs}/reward.json; [ ! -f ${tests}/test.sh ] || chmod +x ${tests}/test.sh`;

/** Returns the name of the script that runs the tests. */
function scriptOf({ printed }: HarborSpec): string {
  return printed === null ? "test.sh" : "run-tests.sh";
}

/** Terminal-Bench's terminal has this size, and shows stdout and stderr together. */
const inTerminal = { command: `exec bash ${tests}/run-tests.sh 2>&1`, env: { COLUMNS: "160", LINES: "40" } };

async function runTests(
  spec: HarborSpec,
  files: TreeFile[],
  { task, signal }: GradeContext,
  { sandbox, environment }: Place,
): Promise<ExecResult> {
  await sandbox.exec(["sh", "-c", prepare], { cwd: "/", user: "root", signal, timeout_ms: 60_000 });
  await sandbox.writeFiles(files, tests);
  // The shell runs a script without a #! line too, as Harbor's does.
  const { command, env } = spec.printed === null ? { command: posix.join(tests, "test.sh"), env: {} } : inTerminal;
  return sandbox.exec(["sh", "-c", command], {
    ...(spec.user === "root" && { user: "root" }),
    env: { ...envInside(environment, sandbox), ...env, ...spec.env },
    stdin: "",
    timeout_ms: task.limits.grade_seconds * 1_000,
    max_output_bytes: task.limits.output_bytes,
    keep_output: "end",
    signal,
  });
}

/**
 * Removes the tests and rewards of a grading, also those behind a link. A link stays until its target is gone. Fails if something
 * is left.
 */
const testsAway = `left=0
for place in ${tests} ${logs}; do
  [ ! -L "$place" ] || rm -rf -- "$(readlink -f -- "$place")"
  { [ -L "$place" ] && [ -e "$place" ]; } || rm -rf -- "$place" || rmdir -- "$place"
  { [ ! -e "$place" ] && [ ! -L "$place" ]; } || left=1
done
exit $left`;

/** Each user removes what it may. The two take turns, so each can remove folders that the other has emptied. */
const removers = ["agent", "root", "agent", "root", "agent"] as const;

/**
 * Removes the tests before the agent goes on in its lent sandbox. Both users must see, one after the other, that nothing is left:
 * on an engine that gives root no capability, each user cannot see into closed folders of the other. Throws `sandbox_error` if
 * something is left or cannot be seen.
 */
export async function removeTests(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  let looks = 0;
  for (const user of removers) {
    const options = { ...(user === "root" && { user }), cwd: "/", programs: "outside", signal, timeout_ms: 60_000 } as const;
    const { exit_code } = await sandbox.exec(["sh", "-c", testsAway], options);
    looks = exit_code === 0 ? looks + 1 : 0;
    if (looks === 2) return;
  }
  throw new AlidadeError("sandbox_error", `the tests of the step before could not be removed from ${tests} and ${logs}`);
}

async function testFiles({ tests, step_tests }: HarborSpec): Promise<TreeFile[]> {
  const [shared, own] = await Promise.all([tests, step_tests].map((folder) => (folder === null ? [] : readFolder(folder))));
  return overlay(shared ?? [], own ?? []).map((file) => (file.path === "test.sh" ? { ...file, mode: 0o755 } : file));
}

/** Throws without isolation, where the tests would write to this machine's own /tests and /logs. */
function assertOwnRoot(sandbox: GradingSandbox): GradingSandbox {
  if (isIsolated(sandbox.facts.isolation)) return sandbox;
  throw new AlidadeError(
    "task_invalid",
    "Harbor's tests write to /tests and /logs: use a sandbox with a root of its own (--sandbox docker).",
  );
}
