/**
 * What the log parsers of the SWE sets share. The lists of a set hold what its own parser said of the known solution, so
 * these read as swebench 5 does, also where another reading were better: the last outcome of a name stands, a name may be
 * cut off at a blank, nothing is counted. The work can print into such a log (tier T1).
 */
import type { ReportParser, TestOutcome } from "../report-parser.ts";

/** What a set's parser says of a test. Other words of a log are kept, and count as failed. */
export type Status = "PASSED" | "FAILED" | "ERROR" | "SKIPPED" | "XFAIL";
export const statuses = ["FAILED", "PASSED", "SKIPPED", "ERROR", "XFAIL"] as const satisfies readonly Status[];

/** Test name -> the status that its log has last. */
export type Statuses = Map<string, string>;

/** The lines between which the sets look for results, and the one that says how the test command ended. */
export const marks = { start: ">>>>> Start Test Output", end: ">>>>> End Test Output", exit: ">>>>> Test Exit Code" } as const;

const outcomes = new Map<string, TestOutcome>([
  ["PASSED", "passed"],
  ["XFAIL", "passed"],
  ["SKIPPED", "skipped"],
]);

type SweParser = Pick<ReportParser, "name" | "title" | "steeredBy"> & { read: (log: string) => Statuses };

export function sweParser({ read, ...about }: SweParser): ReportParser {
  return {
    ...about,
    runner: null,
    source: "output",
    sealed: false,
    parse(text) {
      const found = betweenMarks(text, read);
      const problem = "problem" in found ? found.problem : exitProblem(text, found.statuses);
      const entries = "problem" in found ? [] : [...found.statuses];
      return {
        outcomes: new Map(entries.map(([name, status]) => [name, outcomes.get(status) ?? "failed"])),
        complete: problem === null,
        begun: null,
        problem,
      };
    },
    counts,
  };
}

/** Some runners print their results outside the marks; a log without the marks is one of a command that was cut off. */
function betweenMarks(text: string, read: SweParser["read"]): { statuses: Statuses } | { problem: string } {
  const [, inside] = text.split(marks.start);
  if (inside === undefined || !text.includes(marks.end)) return { problem: `the log lacks its line "${marks.start}" or "${marks.end}"` };
  const statuses = read(inside.split(marks.end)[0] as string);
  if (statuses.size > 0) return { statuses };
  const anywhere = read(text);
  return anywhere.size > 0 ? { statuses: anywhere } : { problem: "the log names no test" };
}

/** A command that fails without a failed test is one whose log was made up. */
function exitProblem(text: string, found: Statuses): string | null {
  const code = text.match(/^>>>>> Test Exit Code: {0,3}(-?\d{1,9})/m)?.[1];
  const failed = [...found.values()].some((status) => status === "FAILED" || status === "ERROR");
  return code === undefined || code === "0" || failed ? null : `the test command ended with ${code}, and its log has no failed test`;
}

/**
 * As the sets count: a test that passed before may be skipped, one that must begin to pass may not. Some lists hold names
 * that were cut off inside their parameters: such a name stands for the tests that begin with it, where these agree.
 */
const counts: ReportParser["counts"] = (found, name, list) => {
  const outcome = found.get(name) ?? (isCutOff(name) ? agreed(found, name) : undefined);
  return outcome === "passed" || (outcome === "skipped" && list === "pass_to_pass");
};

function isCutOff(name: string): boolean {
  return name.split("[").length > name.split("]").length;
}

function agreed(found: ReadonlyMap<string, TestOutcome>, name: string): TestOutcome | undefined {
  const [first, ...others] = [...found].flatMap(([key, outcome]) => (key.startsWith(name) ? [outcome] : []));
  return others.every((outcome) => (outcome === "passed") === (first === "passed")) ? first : undefined;
}

/** Longer lines name no test: the time of a regular expression on one must stay small. */
const longestLine = 4_096;

export function linesOf(log: string): string[] {
  return log.split("\n").filter((line) => line.length <= longestLine);
}

/** The words between white space. */
export function wordsOf(line: string): string[] {
  return line.split(/\s+/).filter((word) => word !== "");
}
