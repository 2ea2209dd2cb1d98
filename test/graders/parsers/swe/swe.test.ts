/** The log parsers of the SWE sets against what swebench's own say (`record.py` asked them), on real logs and on samples. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parserNamed } from "../../../../graders/parsers/registry.ts";
import { marks } from "../../../../graders/parsers/swe/status-log.ts";
import type { RecordedLog } from "../recorded/recorded-log.ts";

type Answer = {
  log?: string;
  sample?: string;
  parser: string;
  statuses: Record<string, string>;
  lists: [string[], string[]];
  report: { resolved: boolean; FAIL_TO_PASS: string[]; PASS_TO_PASS: string[] };
};

const here = import.meta.dirname;
const [header, ...answers] = readFileSync(join(here, "swebench.jsonl"), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));
const samples = JSON.parse(readFileSync(join(here, "samples.json"), "utf8")) as Record<string, string>;
const files = new Map<string, string[]>();

function logOf({ log, sample }: Answer): string {
  if (sample !== undefined) return samples[sample] as string;
  const [file = "", line = "1"] = (log as string).split(":");
  if (!files.has(file))
    files.set(
      file,
      readFileSync(join(here, "../recorded", file), "utf8")
        .trim()
        .split("\n"),
    );
  return (JSON.parse(files.get(file)?.[Number(line) - 1] as string) as RecordedLog).log;
}

const outcomeOf = (status: string) => (status === "SKIPPED" ? "skipped" : status === "PASSED" || status === "XFAIL" ? "passed" : "failed");
const marked = (log: string) => `${marks.start}\n${log}\n${marks.end}\n`;

for (const [name, some] of Map.groupBy(answers as Answer[], ({ parser }) => parser))
  test(`${name} reads ${some.length} logs as swebench ${header.swebench} does, and counts their tests alike`, () => {
    const parser = parserNamed(name);
    for (const answer of some) {
      const about = answer.log ?? `the sample ${answer.sample}`;
      const report = parser.parse(marked(logOf(answer)), "");
      const expected = Object.entries(answer.statuses).map(([test, status]) => [test, outcomeOf(status)]);
      assert.deepEqual(new Map([...report.outcomes].sort()), new Map((expected as [string, string][]).sort()), about);
      const [failToPass, passToPass] = answer.lists;
      const passed = (list: "fail_to_pass" | "pass_to_pass", names: string[]) =>
        names.filter((test) => report.complete && parser.counts?.(report.outcomes, test, list));
      const found = [passed("fail_to_pass", failToPass), passed("pass_to_pass", passToPass)];
      assert.deepEqual(found, [answer.report.FAIL_TO_PASS, answer.report.PASS_TO_PASS], about);
      const all = found[0]?.length === failToPass.length && found[1]?.length === passToPass.length;
      if (expected.length > 0) assert.equal(all, answer.report.resolved, about);
    }
  });

test("a log without its marks, one that names no test, and one whose command failed without a failed test count nothing", () => {
  const { parse } = parserNamed("parse_log_pytest");
  assert.match(parse("PASSED t.py::a\n", "").problem ?? "", /lacks its line/);
  assert.match(parse(`${marks.start}\nPASSED t.py::a\n`, "").problem ?? "", /lacks its line/);
  assert.match(parse(marked("nothing"), "").problem ?? "", /names no test/);
  assert.match(parse(`${marked("PASSED t.py::a")}${marks.exit}: 1\n`, "").problem ?? "", /ended with 1, and its log has no failed test/);
  assert.equal(parse(`${marked("PASSED t.py::a\nFAILED t.py::b")}${marks.exit}: 1\n`, "").problem, null);
});

test("a log of doctest's with millions of beginnings, or nested without end, is read in a time that grows with its length", () => {
  const parser = parserNamed("parse_log_doctest");
  const deep = '<SubCase name="a">'.repeat(80_000) + "<Expression/>".repeat(80_000) + "</SubCase>".repeat(80_000);
  const raw = `<![CDATA[${"<SubCase ".repeat(400_000)}]]>`;
  for (const log of ["<doctest ".repeat(400_000), `<doctest>${deep}</doctest>`, `<doctest>${raw}</doctest>`])
    assert.ok(parser.parse(`${marks.start}\n${log}\n${marks.end}\n`, ""));
});
