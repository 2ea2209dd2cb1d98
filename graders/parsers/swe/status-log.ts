/**
 * What the log parsers of the SWE sets share. A set's lists hold what its own parser said of the known solution. So each parser
 * reads and counts as its set's own code does, also if another way were better. In most sets the last outcome of a name stays, a
 * name may be cut off at a space, and totals are not checked. The work can print into such a log, so the tier is T1.
 */
import type { ReportParser, TestOutcome } from "../report-parser.ts";

/** What a set's parser says of a test. Other words in a log are kept, and count as failed. */
export type Status = "PASSED" | "FAILED" | "ERROR" | "SKIPPED" | "XFAIL";
export const statuses = ["FAILED", "PASSED", "SKIPPED", "ERROR", "XFAIL"] as const satisfies readonly Status[];

/** Test name -> its last status in the log. */
export type Statuses = Map<string, string>;

/** The two lines between which the sets look for results, and the line that says how the test command ended. */
export const marks = { start: ">>>>> Start Test Output", end: ">>>>> End Test Output", exit: ">>>>> Test Exit Code" } as const;

/** `read` throws it if the set's own code gives a log up. The message says why. */
export class UnreadableLog extends Error {}

/** How a set's own code counts what its parsers read. */
export type SetRules = {
  /** Whether a required name of a list counts. Looks the name up as the set's code does. */
  counts: NonNullable<ReportParser["counts"]>;
  /** The statuses that mean passed. */
  passed: readonly string[];
  /** True: a log is incomplete if its command failed and none of its tests failed. */
  heedsExitCode: boolean;
};

/** swebench's rules: a test of `pass_to_pass` may be skipped, one of `fail_to_pass` may not. */
const swebenchRules: SetRules = {
  counts: (found, name, list) => {
    const outcome = found.get(name) ?? (isCutOff(name) ? agreed(found, name) : undefined);
    return outcome === "passed" || (outcome === "skipped" && list === "pass_to_pass");
  },
  passed: ["PASSED", "XFAIL"],
  heedsExitCode: true,
};

/** The rules of some sets: every required name must have passed. */
export function passedOnly(nameOf: (name: string) => string = (name) => name): SetRules {
  return { counts: (found, name) => found.get(nameOf(name)) === "passed", passed: ["PASSED"], heedsExitCode: false };
}

type SweParser = Pick<ReportParser, "name" | "title" | "steeredBy"> & {
  read: (log: string) => Statuses;
  /** Default: swebench's. */
  rules?: SetRules;
};

export function sweParser({ read, rules = swebenchRules, ...about }: SweParser): ReportParser {
  const outcomeOf = (status: string): TestOutcome =>
    rules.passed.includes(status) ? "passed" : status === "SKIPPED" ? "skipped" : "failed";
  return {
    ...about,
    runner: null,
    source: "output",
    sealed: false,
    parse(text) {
      const found = betweenMarks(text, read);
      const problem = "problem" in found ? found.problem : rules.heedsExitCode ? exitProblem(text, found.statuses) : null;
      const entries = "problem" in found ? [] : [...found.statuses];
      return {
        outcomes: new Map(entries.map(([name, status]) => [name, outcomeOf(status)])),
        complete: problem === null,
        begun: null,
        problem,
      };
    },
    counts: rules.counts,
  };
}

/** Reads between the marks, else anywhere: some runners print their results outside. Without both marks the log was cut off. */
function betweenMarks(text: string, read: SweParser["read"]): { statuses: Statuses } | { problem: string } {
  const [, inside] = text.split(marks.start);
  if (inside === undefined || !text.includes(marks.end)) return { problem: `the log lacks its line "${marks.start}" or "${marks.end}"` };
  try {
    const statuses = read(inside.split(marks.end)[0] as string);
    if (statuses.size > 0) return { statuses };
    const anywhere = read(text);
    return anywhere.size > 0 ? { statuses: anywhere } : { problem: "the log names no test" };
  } catch (error) {
    if (error instanceof UnreadableLog) return { problem: error.message };
    throw error;
  }
}

/** If a command fails but no test did, the work may have made the log up. */
function exitProblem(text: string, found: Statuses): string | null {
  const code = text.match(/^>>>>> Test Exit Code: {0,3}(-?\d{1,9})/m)?.[1];
  const failed = [...found.values()].some((status) => status === "FAILED" || status === "ERROR");
  return code === undefined || code === "0" || failed ? null : `the test command ended with ${code}, and its log has no failed test`;
}

/** Some lists hold names that were cut off inside their parameters. Such a name stands for all tests that begin with it, if these agree. */
function isCutOff(name: string): boolean {
  return name.split("[").length > name.split("]").length;
}

function agreed(found: ReadonlyMap<string, TestOutcome>, name: string): TestOutcome | undefined {
  const [first, ...others] = [...found].flatMap(([key, outcome]) => (key.startsWith(name) ? [outcome] : []));
  return others.every((outcome) => (outcome === "passed") === (first === "passed")) ? first : undefined;
}

/** Longer lines name no test, so that a regular expression takes a short time on each line. */
const longestLine = 4_096;

export function linesOf(log: string): string[] {
  return log.split("\n").filter((line) => line.length <= longestLine);
}

/** Returns the words between white space. */
export function wordsOf(line: string): string[] {
  return line.split(/\s+/).filter((word) => word !== "");
}

/** Splits a text as Python's `splitlines` does: also at a lone carriage return and at a form feed. */
export function splitLines(log: string): string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: separators are among them
  return log.split(/\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/).filter((line) => line.length <= longestLine);
}
