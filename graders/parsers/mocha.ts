/**
 * The log of mocha's spec reporter. A name is `suite > test`. A suite is told from a test's output by its indent alone:
 * where tests print indented lines, mocha's TAP reporter is the better choice.
 */
import { logParser, normalName } from "./log-parser.ts";
import { fullName } from "./report-parser.ts";
import { jsSteering } from "./steering/steering-files.ts";
import type { TestList } from "./test-list.ts";

export const mocha = logParser({ name: "mocha", title: "the log of mocha's spec reporter", steeredBy: jsSteering, read });

/** Deeper than any real suite; bounds what an indented line can make us keep. */
const deepest = 50;

function read(lines: string[], list: TestList): void {
  const summaries = lines.flatMap((line, at) => (/^ {2}\d+ passing(?: \(|$)/.test(line) ? [at] : []));
  list.expectOne("line with the number of passing tests", summaries.length);
  const end = summaries[0] ?? lines.length;
  let [passed, failed] = [0, 0];
  const suites: string[] = [];
  for (const line of lines.slice(0, end)) {
    const [, spaces = "", text = ""] = /^( *)(\S.*)$/.exec(line) ?? [];
    const depth = spaces.length / 2 - 1;
    const mark = /^(✔|✓|√|-|\d+\)) (.+)$/.exec(text);
    const isDeeper = depth > Math.min(suites.length, deepest);
    if (mark && isDeeper) list.complain(`a result stands in no suite: ${text.slice(0, 200)}`);
    if (depth < 0 || isDeeper || !Number.isInteger(depth)) continue;
    suites.length = depth;
    const name = (title: string) => fullName([...suites, normalName(title)]);
    const title = mark?.[2] ?? "";
    if (!mark) suites.push(text);
    else if (mark[1] === "-") list.add(name(title), "skipped");
    else if (/^\d/.test(mark[1] as string)) {
      failed++;
      list.add(name(title), "failed");
    } else {
      passed++;
      list.add(name(title), "passed");
    }
  }
  const failing = lines.slice(end, end + 3).find((line) => /^ {2}\d+ failing$/.test(line));
  list.expect("passed", Number.parseInt(lines[end] ?? "0", 10), passed);
  list.expect("failed", Number.parseInt(failing ?? "0", 10), failed);
}
