/**
 * Gradle's log where `testLogging` shows the events passed, failed and skipped. A name is `package.Class > method()`, as
 * Gradle writes it. What tests print is indented there, so that it ends no test.
 */
import { logParser, normalName } from "./log-parser.ts";
import type { TestOutcome } from "./report-parser.ts";
import type { TestList } from "./test-list.ts";

export const gradle = logParser({ name: "gradle", title: 'Gradle\'s log with testLogging events "passed", "failed", "skipped"', read });

const outcomes = new Map<string, TestOutcome>([
  ["PASSED", "passed"],
  ["FAILED", "failed"],
  ["SKIPPED", "skipped"],
]);

function read(lines: string[], list: TestList): void {
  const verdicts = lines.filter((line) => /^BUILD (?:SUCCESSFUL|FAILED) in /.test(line));
  list.expectOne("BUILD line", verdicts.length);
  const counted = { run: 0, failed: 0 };
  const listed = { run: 0, failed: 0 };
  for (const line of lines) {
    const test = /^([^\s>].* > .+) (PASSED|FAILED|SKIPPED)$/.exec(line);
    // Gradle counts only where a test failed.
    const total = /^(\d+) tests? completed, (\d+) failed/.exec(line);
    if (total) {
      counted.run += Number(total[1]);
      counted.failed += Number(total[2]);
    } else if (test) {
      const outcome = outcomes.get(test[2] as string) as TestOutcome;
      listed.run++;
      if (outcome === "failed") listed.failed++;
      list.add(normalName(test[1] as string), outcome);
    }
  }
  list.expect("failed", counted.failed, listed.failed);
  if (counted.run > 0) list.expect("completed", counted.run, listed.run);
  else if (verdicts[0]?.startsWith("BUILD FAILED")) list.complain("the build failed outside of its tests");
}
