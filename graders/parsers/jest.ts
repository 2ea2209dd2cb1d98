/** The log of `jest --verbose`. A test is known by suites and title, and by its title alone. */
import { logParser, normalName } from "./log-parser.ts";
import { fullName, type TestOutcome } from "./report-parser.ts";
import { jsSteering } from "./steering/steering-files.ts";
import type { TestList } from "./test-list.ts";

export const jest = logParser({ name: "jest", title: "the log of jest --verbose", steeredBy: jsSteering, read });

const outcomes = new Map<string, TestOutcome>([
  ["✓", "passed"],
  ["√", "passed"],
  ["✕", "failed"],
  ["×", "failed"],
  ["○", "skipped"],
  ["✎", "skipped"],
]);

/** Deeper than any real suite; bounds what an indented line can make us keep. */
const deepest = 50;

function read(lines: string[], list: TestList): void {
  const summaries: string[] = [];
  const count = { passed: 0, failed: 0, skipped: 0 };
  /** Titles of the open suites; null outside of a file's block, which goes to its first empty line. */
  let suites: string[] | null = null;
  for (const line of lines) {
    const summary = /^Tests: +(.+ total)$/.exec(line);
    if (summary) summaries.push(summary[1] as string);
    if (/^ ?(?:PASS|FAIL) /.test(line)) suites = [];
    else if (!/^ +\S/.test(line) || /^ +●/.test(line)) suites = null;
    if (suites === null || !line.startsWith("  ")) continue;
    const depth = Math.min(line.search(/\S/) / 2 - 1, deepest);
    const test = /^([✓√✕×○✎]) (?:skipped |todo )?(.+)$/.exec(line.trimStart());
    suites.length = Math.min(suites.length, Math.ceil(depth));
    if (!test) suites.push(line.trim());
    else {
      const outcome = outcomes.get(test[1] as string) as TestOutcome;
      const title = normalName(test[2] as string);
      count[outcome]++;
      list.add(fullName([...suites, title]), outcome);
      if (suites.length > 0) list.add(title, outcome);
    }
  }
  list.expectOne("line with the number of tests", summaries.length);
  const total = (word: string) => Number(new RegExp(`(\\d+) ${word}`).exec(summaries[0] ?? "")?.[1] ?? 0);
  list.expect("passed", total("passed"), count.passed, "run jest with --verbose");
  list.expect("failed", total("failed"), count.failed);
}
