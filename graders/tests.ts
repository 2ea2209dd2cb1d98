/**
 * Grades by the project's own tests: the work in a fresh sandbox, protected paths put back, the hidden tests copied
 * over it, the test command run as the unprivileged user, and its report held against the names that must pass.
 *
 * A required name counts when the report is complete and says that it passed; absent, skipped and failed are all the
 * same, extra names are ignored, and the exit code says nothing. Where the work runs apart from the tests, in a container,
 * that is tier T2: the work can neither see nor touch what judges it. `remains_possible` in the evidence says what the way
 * of grading does not stop.
 */
import { randomBytes } from "node:crypto";
import { posix } from "node:path";
import { z } from "zod";
import { AlidadeError } from "../base/errors.ts";
import type { TreeFile } from "../base/files/file-tree.ts";
import { hashTree, isBelow } from "../base/files/file-tree.ts";
import type { Tier, Verdict } from "../base/schema/rollout.ts";
import type { Task } from "../base/schema/task.ts";
import type { ExecResult, Sandbox } from "../sandboxes/index.ts";
import { envInside } from "../sandboxes/index.ts";
import { handedOver, reportFolder, runTests } from "./by-tests/run-tests.ts";
import { whatRemains } from "./by-tests/what-remains.ts";
import { commandClock } from "./fault/clock.ts";
import type { GradeContext, Grader } from "./grader.ts";
import { hiddenTests } from "./hidden-tests.ts";
import { canRunApart, parserOf, parsers } from "./parsers/registry.ts";
import type { Report, ReportParser } from "./parsers/report-parser.ts";
import { steeringFiles } from "./parsers/steering/steering-files.ts";
import { placeToGrade, tierIn, tierWhere } from "./shared/place-to-grade.ts";
import { addedPaths, placeWork, removePaths, workEvidence } from "./work/work.ts";

const parserNames = parsers.map(({ name }) => name);

const TestsFields = z.strictObject({
  kind: z.literal("tests"),
  /**
   * Run in the workdir of a fresh sandbox after the tests were copied in. Its exit code is never the verdict.
   * `{runner}` stands for the path of the parser's own runner (tape, node-test, pytest, unittest), `{report}` for that of the
   * report (junit).
   */
  command: z.array(z.string()).min(1),
  /** How to read the report: one of the list in graders/parsers/. */
  parser: z.enum(parserNames, {
    error: ({ input }) => `${input === undefined ? "is missing" : `is ${JSON.stringify(input)}`}: give one of ${parserNames.join(", ")}`,
  }),
  /** Folder on the host. Its files are copied over the work and replace files there. null: the tests are the patch's, or the command's. */
  tests: z.string().nullable().default(null),
  /** Or a unified diff of the tests, against the files as they are delivered: the files that it makes replace those of the work. */
  test_patch: z.string().optional(),
  /** Globs of delivered files that belong to the tests, such as their helpers: they come with the hidden ones, as they were delivered. */
  test_files: z.array(z.string()).min(1).optional(),
  /** Names that must be present and passed: failing before the fix, and passing before and after. */
  fail_to_pass: z.array(z.string()),
  pass_to_pass: z.array(z.string()),
  /**
   * Paths (globs from the workdir) that are put back from the base before grading, so that edits there do not count. Left
   * out: the files that steer the parser's framework (parsers/steering-files.ts). [] where such files are the work itself.
   */
  protected: z.array(z.string()).optional(),
  /**
   * `apart`: the work is loaded by a process of its own, and the tests see what it returns as copies and stand-ins. That is
   * the default for the parsers that can (graders/parsers/). `together`: the tests' process loads it, at a lower tier, for
   * tests that see no copy: they look at globals or arguments that the work changes, or hand it instances.
   */
  work_runs: z.enum(["apart", "together"]).optional(),
});

/** Also what other task forms say of their tests. */
export const TestsSpec = TestsFields.refine((spec) => spec.work_runs !== "apart" || canRunApart(spec), {
  path: ["work_runs"],
  error: ({ input }) =>
    `is "apart", and nothing runs the tests of ${(input as z.infer<typeof TestsFields>).parser} apart with this command: name {runner} as a word of its own, with the parser ${parserNames.filter((name) => canRunApart({ parser: name, command: ["{runner}"] })).join(", ")}`,
});

export type TestsSpec = z.infer<typeof TestsSpec>;

/** Names and output in a verdict are for a person; a record must stay readable. */
const evidenceNames = 50;
const evidenceOutput = 4_000;

export const tests: Grader<TestsSpec> = {
  name: "tests",
  title: "The project's own tests: every required name present and passed",
  spec: TestsSpec,
  folders: ["tests"],
  version: "2",
  tier: (spec, task) => tierWhere(task, tierFor(spec, task)),

  async grade(spec, context) {
    const started = performance.now();
    await using sandbox = await placeToGrade(context);
    const { parser, apart, hidden, onDisk, result, report } = await testWork(spec, context, sandbox);
    const facts = {
      tier: tierIn(sandbox, tierFor(spec, context.task)),
      isolation: sandbox.facts.isolation,
      grader: `tests/${parser.name}`,
    } as const;
    const remains = whatRemains(parser, {
      apart,
      onDisk,
      workdirOnly: context.task.environment.work === "workdir",
      isolation: sandbox.facts.isolation,
    });
    const clock = commandClock(result, context.task.limits);
    const evidence = { ...evidenceOf(context, hidden), ...resultEvidence(result, report), clock, remains_possible: remains };
    const duration_ms = performance.now() - started;
    if (result.timed_out) {
      const message = `the tests were not finished after ${context.task.limits.grade_seconds} seconds (limits.grade_seconds)`;
      return {
        ...facts,
        reward: null,
        components: {},
        status: "grader_timeout",
        evidence,
        error: { code: "grader_timeout", message, status: null },
        duration_ms,
      };
    }
    await refuseUnstarted(spec, sandbox, result, report, context);
    const { reward, components, names } = judge(spec, parser, report);
    return { ...facts, reward, components, status: "graded", evidence: { ...evidence, ...names }, error: null, duration_ms };
  },
};

/** One run of the tests over a work. */
type TestedWork = {
  parser: ReportParser;
  apart: boolean;
  hidden: TreeFile[];
  /** Whether some of the hidden tests lay in the workdir. */
  onDisk: boolean;
  result: ExecResult;
  report: Report;
};

/** Puts the work and the hidden tests into a fresh sandbox of the task, runs the tests there and reads what they report. */
export async function testWork(spec: TestsSpec, context: Omit<GradeContext, "fresh">, sandbox: Sandbox): Promise<TestedWork> {
  const parser = parserOf(spec);
  const apart = runsApart(spec);
  const { files: hidden, removed } = await hiddenTests(spec, sandbox);
  const { workdir } = context.task.environment;
  const added = addedPaths(context.work, workdir);
  const kept = spec.protected ?? steeringFiles(parser, added);
  await placeWork(sandbox, context.task, context.work, { protected: kept, over: hidden }, context.signal);
  const handed = new Set(handedOver({ parser, hidden, apart }));
  const onDisk = hidden.filter((file) => !handed.has(file));
  // On top: they win.
  await sandbox.writeFiles(onDisk);
  await removePaths(
    sandbox,
    removed.map((path) => `${workdir}/${path}`),
    context.signal,
  );
  const key = randomBytes(32).toString("hex");
  const result = await runTests({ parser, command: spec.command, hidden, apart }, key, sandbox, context);
  const report = await readReport(parser, key, sandbox, result);
  return { parser, apart, hidden, onDisk: onDisk.length > 0, result, report };
}

async function readReport(parser: ReportParser, key: string, sandbox: Sandbox, result: ExecResult): Promise<Report> {
  if (parser.source !== "file") return printedReport(parser, key, result);
  // Nothing that the tests left running may write while the report is read.
  await sandbox.freeze();
  const files = await sandbox.readFiles(reportFolder, { max_files: 100, max_bytes: 32 * 1024 * 1024 }).catch((error: unknown) => {
    // The work can take the folder away or fill it: then there is no report, and that is its own doing.
    if (error instanceof AlidadeError && (error.code === "not_found" || error.code === "output_too_large")) return [];
    throw error;
  });
  return parser.parse(files.find((file) => file.path === "report.xml")?.content.toString("utf8") ?? "", key);
}

function printedReport(parser: ReportParser, key: string, { stdout, stderr, dropped_bytes }: ExecResult): Report {
  // unittest and jest report on stderr; a command may also send that to stdout.
  const report = parser.parse(parser.source === "output" ? `${stdout}\n${stderr}` : stdout, key);
  if (parser.sealed || dropped_bytes === 0) return report;
  // A log that lost a part of its own may look whole.
  const problem = report.problem ?? `the tests printed ${dropped_bytes} bytes more than are kept (limits.output_bytes)`;
  return { ...report, complete: false, problem };
}

/** Whether the work is loaded by another process than that of the tests. */
export function runsApart(spec: TestsSpec): boolean {
  return canRunApart(spec) && spec.work_runs !== "together";
}

/**
 * T2 needs a report that the work cannot write: tests in another process, of another user. In one process with the work no report is safe, sealed or not. Where more than the workdir crosses, or the
 * interpreter lies in the workdir, the work may bring the program that runs the tests.
 */
function tierFor(spec: TestsSpec, { environment }: Task): Tier {
  const isSafe = runsApart(spec) && parserOf(spec).sealed && environment.work === "workdir" && !startsInWorkdir(spec, environment);
  return isSafe ? "T2" : "T1";
}

/**
 * Whether what stands before the runner may be a file of the workdir: the Python of a virtual environment there, a script,
 * a line for a shell. A program that is named without a path is looked for outside (run-tests.ts).
 */
function startsInWorkdir({ command }: TestsSpec, { workdir }: Task["environment"]): boolean {
  const at = command.findIndex((word) => word.includes("{runner}"));
  if (at >= 0 && command[at] !== "{runner}") return true;
  const [program = "", ...options] = command.slice(0, Math.max(at, 1));
  const isInside = (word: string) => word.includes("/") && isBelow(posix.resolve(workdir, word), workdir);
  return isInside(program) || options.some((word) => !word.startsWith("-") || isInside(word));
}

/**
 * A command that could not be started is our failure and not the work's. With a sealed parser the runner speaks before
 * it loads any of the work; otherwise the command is looked for, in a sandbox that holds none of it.
 */
async function refuseUnstarted(
  spec: TestsSpec,
  sandbox: Sandbox,
  result: ExecResult,
  report: Report,
  context: GradeContext,
): Promise<void> {
  if (result.out_of_memory) return;
  const failed =
    report.begun === false || (report.begun === null && report.outcomes.size === 0 && (await isMissing(spec, result, context)));
  if (!failed) return;
  const tail = (result.stderr || result.stdout).slice(-500).trim();
  throw new AlidadeError(
    "grader_error",
    `the test command ${JSON.stringify(spec.command)} could not be started in ${sandbox.facts.image ?? sandbox.facts.backend}: ${tail || `exit code ${result.exit_code}`}`,
  );
}

async function isMissing(spec: TestsSpec, result: ExecResult, { task, fresh, signal }: GradeContext): Promise<boolean> {
  if (result.exit_code !== 126 && result.exit_code !== 127) return false;
  await using empty = await fresh();
  const argv = ["sh", "-c", 'command -v -- "$0"', spec.command[0] as string];
  const found = await empty.exec(argv, { env: envInside(task.environment, empty), timeout_ms: 30_000, signal });
  return found.exit_code !== 0;
}

type Judgement = { reward: number; components: Verdict["components"]; names: Record<string, unknown> };

function judge(spec: TestsSpec, parser: ReportParser, report: Report): Judgement {
  const outcome = (name: string) => report.outcomes.get(parser.nameOf?.(name) ?? name);
  const counts = parser.counts ?? ((_found, name) => outcome(name) === "passed");
  const missing = (list: "fail_to_pass" | "pass_to_pass") =>
    spec[list].filter((name) => !report.complete || !counts(report.outcomes, name, list));
  const lacks = { fail_to_pass: missing("fail_to_pass"), pass_to_pass: missing("pass_to_pass") };
  const share = (list: "fail_to_pass" | "pass_to_pass") => (spec[list].length === 0 ? null : 1 - lacks[list].length / spec[list].length);
  const required = new Set([...spec.fail_to_pass, ...spec.pass_to_pass]);
  const failed = [...new Set([...lacks.fail_to_pass, ...lacks.pass_to_pass])];
  return {
    reward: report.complete && failed.length === 0 ? 1 : 0,
    // Shown beside the reward and no part of it: all or nothing is what the tests mean.
    components: {
      fail_to_pass: { value: share("fail_to_pass"), weight: 0 },
      pass_to_pass: { value: share("pass_to_pass"), weight: 0 },
    },
    names: {
      required: required.size,
      failed_count: failed.length,
      failed: failed.slice(0, evidenceNames).map((name) => ({ name: name.slice(0, 200), outcome: outcome(name) ?? "absent" })),
    },
  };
}

function evidenceOf({ work, task }: GradeContext, hidden: TreeFile[]): Record<string, unknown> {
  const { added, modified, deleted, ...facts } = workEvidence(work, task);
  const names = (paths: string[]) => paths.slice(0, evidenceNames);
  return { ...facts, added: names(added), modified: names(modified), deleted: names(deleted), tests_sha256: hashTree(hidden) };
}

function resultEvidence(result: ExecResult, report: Report): Record<string, unknown> {
  const printed = `${result.stdout.replace(/^\n?@report [0-9a-f]{64} .*\n/gm, "")}${result.stderr}`;
  return {
    report_complete: report.complete,
    report_problem: report.problem,
    reported: report.outcomes.size,
    exit_code: result.exit_code,
    out_of_memory: result.out_of_memory,
    dropped_bytes: result.dropped_bytes,
    output_tail: printed.slice(-evidenceOutput),
  };
}
