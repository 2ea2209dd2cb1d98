/**
 * Maven's log with one line a test: `mvn test -Dsurefire.useFile=false -Dsurefire.reportFormat=plain`. A name is
 * `package.Class.method`, also where an older Surefire writes `method(package.Class)`.
 */
import { logParser, normalName } from "./log-parser.ts";
import type { TestList } from "./test-list.ts";

export const maven = logParser({
  name: "maven",
  title: "Maven's log, run with -Dsurefire.useFile=false -Dsurefire.reportFormat=plain",
  nameOf,
  read,
});

function nameOf(name: string): string {
  const old = /^(\S+)\(([\w.$]+\.[\w$]+)\)$/.exec(name);
  return normalName(old ? `${old[2]}.${old[1]}` : name);
}

const totals = /Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)$/;

function read(lines: string[], list: TestList): void {
  const verdicts = lines.filter((line) => /^\[\w+\] BUILD (?:SUCCESS|FAILURE)$/.test(line));
  list.expectOne("BUILD line", verdicts.length);
  const counted = { run: 0, failed: 0 };
  const listed = { run: 0, failed: 0 };
  for (const line of lines) {
    const total = totals.exec(line)?.slice(1).map(Number);
    const text = line.replace(/^\[(?:INFO|ERROR|WARNING)\] /, "");
    const ended = /^(\S.*?)(?: --)? {1,2}Time elapsed: [\d.,]+ s(?:ec)?(?: {1,2}<<< (?:FAILURE|ERROR)!)?$/.exec(text);
    const skipped = /^(\S+) skipped$/.exec(text);
    if (total) {
      // One line a module; the lines of a class also tell a time, and are not read.
      const [run = 0, failures = 0, errors = 0] = total;
      counted.run += run;
      counted.failed += failures + errors;
    } else if ((ended || skipped) && !text.startsWith("Tests run:")) {
      const failed = text.endsWith("!");
      listed.run++;
      if (failed) listed.failed++;
      list.add(nameOf((ended?.[1] ?? skipped?.[1]) as string), skipped ? "skipped" : failed ? "failed" : "passed");
    }
  }
  list.expect("run", counted.run, listed.run, "run Maven with -Dsurefire.useFile=false -Dsurefire.reportFormat=plain");
  list.expect("failed", counted.failed, listed.failed);
}
