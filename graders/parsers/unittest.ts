/**
 * unittest's log with `-v`, also as Django writes it. A name is `test_x (module.Class)`: the `.test_x` that Python 3.11
 * and later put behind the class is left out. A test with a docstring is also known by its first line.
 */
import { logParser } from "./log-parser.ts";
import type { TestOutcome } from "./report-parser.ts";
import { pythonModules } from "./steering/python-modules.ts";
import { pythonSteering } from "./steering/steering-files.ts";
import type { TestList } from "./test-list.ts";

export const unittest = logParser({
  name: "unittest",
  title: "unittest's log, run with -v",
  steeredBy: pythonSteering,
  modules: pythonModules,
  nameOf: shortName,
  read,
});

const words = new Map<string, TestOutcome>([
  ["ok", "passed"],
  ["expected failure", "passed"],
  ["FAIL", "failed"],
  ["ERROR", "failed"],
  ["unexpected success", "failed"],
]);

function shortName(name: string): string {
  const found = /^(\S+) \((.+)\)$/.exec(name);
  const [, test = "", place = ""] = found ?? [];
  return found && place.endsWith(`.${test}`) ? `${test} (${place.slice(0, -test.length - 1)})` : name;
}

/** Before Python 3.11 a test with a failed subtest ends without a word, and the next one begins on its line. */
function startsOf(line: string): string[] {
  return line.split(/(?<= \.\.\. )(?=\w{1,200} \([\w.<>]{1,500}\) \.\.\. )/);
}

function outcomeOf(text: string): TestOutcome | undefined {
  return /^skipped\b/.test(text) ? "skipped" : words.get(text);
}

/** `counts`: it is one of the run tests, and no part of one. `end`: the word that it ended with. */
type BegunTest = { names: string[]; counts: boolean; end: string | null };

function read(lines: string[], list: TestList): void {
  let last: BegunTest = { names: [], counts: false, end: null };
  let [begun, failures, expected] = [0, 0, 0];
  const skipped = { tests: 0, words: 0 };
  /** Names of tests behind whose `expected failure` a line says `skipped`: Python 3.12.1 leaves the next test's name out there. */
  const doubtful: string[] = [];
  const ran: number[] = [];
  const verdicts: string[] = [];
  const end = (text: string) => {
    const outcome = outcomeOf(text);
    if (outcome === undefined) return;
    if (text === "expected failure") expected++;
    if (outcome === "skipped") {
      skipped.words++;
      if (last.counts && last.end === null) skipped.tests++;
      if (last.end === "expected failure") {
        doubtful.push(...last.names);
        return;
      }
    }
    last.end = text;
    for (const name of last.names) list.add(name, outcome);
  };
  for (const line of lines.flatMap(startsOf)) {
    const test = /^ {0,2}(\w+ \([\w.<>]+\))(?=$| )(.*)$/.exec(line);
    const failure = /^(?:FAIL|ERROR): (\w+ \([\w.<>]+\))/.exec(line);
    const total = /^Ran (\d+) tests? in [\d.]+s$/.exec(line);
    const dots = line.lastIndexOf(" ... ");
    if (test) {
      const [, name = "", rest = ""] = test;
      // A subtest speaks for its test; a class or module that cannot be set up is no test.
      const isPart = /^ [([]/.test(rest) || line.startsWith("  ");
      const counts = !isPart && !/^(?:setUp|tearDown)(?:Class|Module) /.test(name);
      last = { names: [shortName(name)], counts, end: null };
      if (counts) begun++;
      if (dots !== -1) end(line.slice(dots + 5));
    } else if (failure) {
      failures++;
      list.add(shortName(failure[1] as string), "failed");
    } else if (total) ran.push(Number(total[1]));
    else if (/^(?:OK|FAILED|NO TESTS RAN)(?: \(.*\))?$/.test(line)) verdicts.push(line);
    else if (dots !== -1 && last.names.length === 1 && !list.outcomes.has(last.names[0] as string)) {
      last.names.push(line.slice(0, dots));
      end(line.slice(dots + 5));
    } else end(line);
  }
  const [verdict] = verdicts;
  list.expectOne("line with the number of tests", ran.length);
  list.expectOne("line with the verdict", verdicts.length);
  list.expect("failed", countOf(verdict, "failures") + countOf(verdict, "errors"), failures);
  // Python 3.12.1 does not count a test that a decorator skips. Its log does not mark these tests among the skipped ones.
  const [count = 0] = ran;
  const leavesOutSkipped = count < begun && count >= begun - skipped.tests && countOf(verdict, "skipped") === skipped.words;
  if (!leavesOutSkipped) list.expect("run", count, begun, "run unittest with -v");
  // As many as the summary counts were the framework's own words; else the work printed one in front of a skipped test.
  if (countOf(verdict, "expected failures") !== expected) for (const name of doubtful) list.add(name, "skipped");
}

function countOf(verdict: string | undefined, what: string): number {
  return Number(new RegExp(`(?:\\(|, )${what}=(\\d+)`).exec(verdict ?? "")?.[1] ?? 0);
}
