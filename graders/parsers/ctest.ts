/** The log of ctest, with or without the output of the tests. */
import { logParser } from "./log-parser.ts";
import type { TestOutcome } from "./report-parser.ts";
import { ctestSteering } from "./steering/steering-files.ts";
import type { TestList } from "./test-list.ts";

export const ctest = logParser({ name: "ctest", title: "the log of ctest", steeredBy: ctestSteering, read });

function read(lines: string[], list: TestList): void {
  const summaries: [number, number][] = [];
  const numbers = new Set<string>();
  let [listed, failed] = [0, 0];
  for (const line of lines) {
    const summary = /^\d+% tests passed, (\d+) tests? failed out of (\d+)$/.exec(line);
    const test = /^ *(\d+)\/\d+ Test +#\d+: (\S+) \.+( {3}Passed|\*\*\*\w[\w ()]*)/.exec(line);
    if (summary) summaries.push([Number(summary[1]), Number(summary[2])]);
    if (!test) continue;
    listed++;
    numbers.add(test[1] as string);
    const outcome = outcomeOf(test[3] as string);
    if (outcome === "failed") failed++;
    list.add(test[2] as string, outcome);
  }
  list.expectOne("line with the share of passed tests", summaries.length);
  const [failures, total] = summaries[0] ?? [0, 0];
  list.expect("run", total, listed);
  list.expect("failed", failures, failed);
  if (numbers.size !== listed) list.complain("two tests have one number in the order of their end");
}

function outcomeOf(word: string): TestOutcome {
  if (word === "   Passed") return "passed";
  return /^\*\*\*(?:Skipped|Not Run \(Disabled\))/.test(word) ? "skipped" : "failed";
}
