/** What a way of grading by tests does not stop, in words: it stands in the verdict. */
import { isIsolated, isLent, type Verdict } from "../../base/schema/rollout.ts";
import type { ReportParser } from "../parsers/report-parser.ts";

export type Grading = {
  /** The work runs in another process than the tests. */
  apart: boolean;
  /** Hidden files lie where the work can read them. */
  onDisk: boolean;
  /** Only the workdir crosses to the grader. */
  workdirOnly: boolean;
  isolation: Verdict["isolation"];
};

export function whatRemains(parser: ReportParser, { apart, onDisk, workdirOnly, isolation }: Grading): string[] {
  const isPython = parser.language === "python";
  const lines = [
    [!isIsolated(isolation), "The work shares this machine with what grades it: it can read and change all that its user can."],
    [
      isLent(isolation),
      "The tests run in the agent's own sandbox: programs, libraries, configuration and files that it left there take part.",
    ],
    [!workdirOnly, "The work may bring programs outside the workdir, such as the one that runs the tests."],
    [!parser.sealed, "The work can print or write a report of its own."],
    [
      !apart,
      "The tests load the work into their own process: code that looks for the tests' values or the runner's key in memory, or changes what they compare with, may pass.",
    ],
    [apart, "Where a test asserts by what a method of a returned object says, and not by data, it has the work's word for it."],
    [apart && !isPython, "Whether two objects that the work returned are the same one, it says itself."],
    [
      apart && !isPython,
      "A program that a test starts runs as the user of the tests: where that runs the work, the work can reach the tests and their report.",
    ],
    [apart && isPython, "A test that runs text which it read from a file of the workdir runs the work as the user of the tests."],
    [onDisk, "Hidden files lie on the disk while the work runs, which may read them."],
  ] as const;
  return lines.filter(([holds]) => holds).map(([, text]) => text);
}
