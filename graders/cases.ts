/**
 * Grades a program as a black box: it is run as a command, once for each case, and what it prints and how it ends is
 * compared here. No expected output, no test and no framework is ever inside its sandbox, and nothing of the work is loaded
 * by what judges it, so a work has nothing to find, to change or to forge.
 */
import { z } from "zod";
import { AlidadeError } from "../base/errors.ts";
import { readFolder } from "../base/files/file-tree.ts";
import type { Limits } from "../base/schema/task.ts";
import type { ExecResult, Sandbox } from "../sandboxes/index.ts";
import { envInside } from "../sandboxes/index.ts";
import type { Clock } from "./fault/clock.ts";
import { withHungParts } from "./fault/hung-part.ts";
import type { ExpectedText, GradeContext, Grader } from "./grader.ts";
import { Condition, hold, looseTexts, whyTooLong } from "./rules/condition.ts";
import { type RuleResult, ruleVerdict } from "./rules/rule-verdict.ts";
import { placeToGrade, tierWhere } from "./shared/place-to-grade.ts";
import { placeWork, workEvidence } from "./work/work.ts";

const ProgramCase = z.strictObject({
  name: z.string().min(1).max(100).optional(),
  args: z.array(z.string()).default([]).describe("behind the command"),
  stdin: z.string().default(""),
  stdout: z
    .union([z.string(), Condition], { error: "give a text, or one of equals, contains, matches" })
    .optional()
    .describe("a text: the same but for white space at the ends of lines and of the whole; left out: anything"),
  exit: z.number().int().min(0).max(255).default(0).describe("exit code"),
});
type ProgramCase = z.infer<typeof ProgramCase>;

const CasesSpec = z
  .strictObject({
    kind: z.literal("cases"),
    command: z.array(z.string()).min(1).describe("the program, run in the workdir"),
    cases: z.array(ProgramCase).min(1).max(200),
    files: z.string().nullable().default(null).describe("folder of inputs that are put into the workdir before the first case"),
    pays: z.enum(["all", "share"]).default("all").describe("all: 1 where every case holds, else 0; share: the cases that hold / all"),
    seconds: z
      .number()
      .positive()
      .max(3_600)
      .optional()
      .describe("of one case; left out: an equal part of limits.grade_seconds, at most 10"),
  })
  .refine(({ cases }) => new Set(cases.map(nameOf)).size === cases.length, { path: ["cases"], error: "two cases have one name" });
type CasesSpec = z.infer<typeof CasesSpec>;

export const cases: Grader<CasesSpec> = {
  name: "cases",
  title: "The program is run as a command: input, output and exit code",
  version: "3",
  spec: CasesSpec,
  folders: ["files"],
  expected: (spec) => spec.cases.flatMap(expectedOf),
  loose: (spec) => spec.cases.flatMap(({ stdout }) => (typeof stdout === "object" ? looseTexts(stdout, null) : [])),
  tier: (_spec, task) => tierWhere(task, "T3"),

  async grade(spec, context) {
    const started = performance.now();
    const timeout_ms = caseMs(spec, context.task.limits);
    await using sandbox = await placeToGrade(context);
    await placeAll(spec, context, sandbox);
    const results: CaseResult[] = [];
    for (const [index, one] of spec.cases.entries()) {
      const isLate = results.some(isHung) && performance.now() - started > context.task.limits.grade_seconds * 1_000;
      const result = isLate ? { why: lateAfterHang, took_ms: 0 } : await resultOf(one, spec, timeout_ms, context, sandbox);
      results.push({ ...result, name: nameOf(one, index), holds: result.why === null, why: result.why ?? "" });
    }
    const { work_sha256, no_change } = workEvidence(context.work, context.task);
    const { isolation } = sandbox.facts;
    // Cases that ended show how long one takes here.
    const clock: Clock = { took_ms: Math.max(0, ...results.map((one) => (isHung(one) ? 0 : one.took_ms))), limit_ms: timeout_ms };
    const evidence = { work_sha256, no_change, clock, remains_possible: [remains] };
    const whole = ruleVerdict("cases", results, { isolation }, started, evidence);
    const verdict = spec.pays === "all" ? whole : { ...whole, reward: shareOf(results), formula: "the components' mean" };
    return isDecided(spec, results) ? verdict : withHungParts(verdict, namesOfHung(results), `${timeout_ms / 1_000} seconds`);
  },
};

type CaseResult = RuleResult & { took_ms: number };

const hangs = "it did not end in its time";
const lateAfterHang = "it was not run: a case that did not end took the time";

function isHung({ why }: RuleResult): boolean {
  return why === hangs;
}

/** Cases that ended say all, or one of them says enough. */
function isDecided({ pays }: CasesSpec, results: readonly RuleResult[]): boolean {
  const open = results.filter(({ why }) => why === hangs || why === lateAfterHang);
  return open.length === 0 || (pays === "all" && results.some((one) => !one.holds && !open.includes(one)));
}

function namesOfHung(results: readonly RuleResult[]): string[] {
  return results.filter(isHung).map(({ name }) => name);
}

/** A pattern is no text that a work could copy. */
function expectedOf({ args, stdin, stdout }: ProgramCase): ExpectedText[] {
  const wanted = typeof stdout === "object" ? (stdout.contains ?? stdout.equals) : stdout;
  return typeof wanted === "string" ? [{ text: wanted, given: [...args, stdin].join("\n") }] : [];
}

const remains = "A program that knows these inputs, and nothing else, earns as much as one that solves the task.";

/** A program that answers a person has answered by then. */
const usualSeconds = 10;

/** Divides the grading's time among the cases. If the program hangs in one of them, there is time for the others. */
function caseMs({ seconds, cases }: CasesSpec, { grade_seconds }: Limits): number {
  const part = grade_seconds / cases.length;
  if (seconds === undefined) return Math.min(usualSeconds, part) * 1_000;
  if (seconds <= part) return seconds * 1_000;
  throw new AlidadeError(
    "task_invalid",
    `${cases.length} cases of ${seconds} seconds are more than limits.grade_seconds (${grade_seconds}): raise it, or lower grader.seconds`,
    { param: "grader.seconds" },
  );
}

async function placeAll({ files: folder }: CasesSpec, { task, work, signal }: GradeContext, sandbox: Sandbox): Promise<void> {
  const files = folder === null ? [] : await readFolder(folder);
  await placeWork(sandbox, task, work, { over: files }, signal);
  if (files.length > 0) await sandbox.writeFiles(files);
}

function run(
  { command }: CasesSpec,
  { args, stdin }: ProgramCase,
  timeout_ms: number,
  { task, signal }: GradeContext,
  sandbox: Sandbox,
): Promise<ExecResult> {
  return sandbox.exec([...command, ...args], {
    user: "agent",
    env: envInside(task.environment, sandbox),
    stdin,
    timeout_ms,
    max_output_bytes: task.limits.output_bytes,
    signal,
  });
}

/** `why`: null where the case holds, else what the program did, and not what was expected. */
async function resultOf(
  one: ProgramCase,
  spec: CasesSpec,
  timeout_ms: number,
  context: GradeContext,
  sandbox: Sandbox,
): Promise<{ why: string | null; took_ms: number }> {
  const result = await run(spec, one, timeout_ms, context, sandbox);
  const took_ms = result.duration_ms;
  if (!result.timed_out) return { why: await whyWrong(one, result, context.signal), took_ms };
  // What it left running would take the other cases' time.
  await sandbox.freeze("commands");
  return { why: hangs, took_ms };
}

async function whyWrong({ stdout: expected, exit }: ProgramCase, result: ExecResult, signal: AbortSignal): Promise<string | null> {
  if (result.out_of_memory) return "it ran out of memory";
  if (result.exit_code !== exit) return `it ended with ${result.exit_code ?? "a signal"}: ${(result.stderr || result.stdout).slice(-200)}`;
  if (expected === undefined) return null;
  if (result.dropped_bytes > 0) return "it printed more than is kept (limits.output_bytes)";
  const printed = result.stdout;
  const wrong = `it printed ${printed.slice(0, 200) || "nothing"}`;
  if (typeof expected === "string") return trimmed(printed) === trimmed(expected) ? null : wrong;
  const [holds] = await hold(expected, [printed], signal);
  return holds === true ? null : (whyTooLong(expected, printed) ?? wrong);
}

/** Tried at the first character of each run alone: a program may print megabytes of spaces. */
const endsOfLines = /(?<![ \t\r])[ \t\r]+$/gm;

function trimmed(text: string): string {
  return text.replaceAll(endsOfLines, "").trim();
}

function nameOf({ name }: ProgramCase, index: number): string {
  return name ?? `case ${index + 1}`;
}

function shareOf(results: readonly RuleResult[]): number {
  return results.filter(({ holds }) => holds).length / results.length;
}
