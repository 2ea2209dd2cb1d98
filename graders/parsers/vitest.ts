/** The log of vitest's verbose reporter. A name is `file > suite > test`, as vitest writes it. */
import { logParser, normalName } from "./log-parser.ts";
import type { TestOutcome } from "./report-parser.ts";
import { jsSteering } from "./steering/steering-files.ts";
import type { TestList } from "./test-list.ts";

export const vitest = logParser({ name: "vitest", title: "vitest's log, run with --reporter=verbose", steeredBy: jsSteering, read });

const outcomes = new Map<string, TestOutcome>([
  ["✓", "passed"],
  ["×", "failed"],
  ["↓", "skipped"],
]);

function read(lines: string[], list: TestList): void {
  const summaries: string[] = [];
  let [passed, failed] = [0, 0];
  for (const line of lines) {
    const summary = /^ +Tests {2}(.+)$/.exec(line);
    const test = /^ ([✓×↓]) (.+)$/.exec(line);
    if (summary) summaries.push(summary[1] as string);
    if (!test?.[2]?.includes(" > ")) continue;
    const outcome = outcomes.get(test[1] as string) as TestOutcome;
    if (outcome === "passed") passed++;
    if (outcome === "failed") failed++;
    list.add(normalName((test[2] as string).replace(/ \((?:retry|repeat) x\d+\)$/, "").replace(/ \d+m?s$/, "")), outcome);
  }
  list.expectOne("line with the number of tests", summaries.length);
  list.expect(
    "passed",
    countOf(summaries[0], "passed") + countOf(summaries[0], "expected fail"),
    passed,
    "run vitest with --reporter=verbose",
  );
  list.expect("failed", countOf(summaries[0], "failed"), failed);
}

/** The number before a word in `1 failed | 2 passed (3)`. */
function countOf(summary: string | undefined, word: string): number {
  const found = (summary ?? "").split(/ \| | \(/).find((part) => part.endsWith(` ${word}`));
  return Number.parseInt(found ?? "0", 10);
}
