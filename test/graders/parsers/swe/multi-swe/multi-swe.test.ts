/** The parsers of Multi-SWE-bench against what the classes of its repositories say (`record.py` asked them). */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parserNamed } from "../../../../../graders/parsers/registry.ts";
import { multiSweParsers } from "../../../../../graders/parsers/swe/multi-swe/index.ts";
import { marked, type RecordedAnswer, readRecorded, recordedLog } from "../recorded-answers.ts";

const { header, answers } = readRecorded(import.meta.dirname);
const samples = JSON.parse(readFileSync(join(import.meta.dirname, "samples.json"), "utf8")) as Record<string, string>;
const outcomeOf = (status: string) => (status === "SKIPPED" ? "skipped" : status === "PASSED" ? "passed" : "failed");

for (const [name, some] of Map.groupBy(answers, ({ parser }) => parser))
  test(`${name} reads ${some.length} logs as multi-swe-bench at ${header.commit?.slice(0, 8)} does`, () => {
    for (const answer of some) {
      const report = parserNamed(name).parse(marked(recordedLog(answer, samples)), "");
      const about = answer.log ?? "the sample";
      if (answer.statuses === null) assert.notEqual(report.problem, null, about);
      else assert.deepEqual(new Map([...report.outcomes].sort()), expected(answer.statuses), about);
    }
  });

function expected(statuses: NonNullable<RecordedAnswer["statuses"]>): Map<string, string> {
  const entries = Object.entries(statuses).map(([test, status]) => [test, outcomeOf(status)] as const);
  return new Map([...entries].sort());
}

test("every parser of the set is held against its class, with a sample that has a failure", () => {
  const asked = new Set(
    answers.filter(({ statuses }) => statuses === null || Object.keys(statuses).length > 0).map(({ parser }) => parser),
  );
  assert.deepEqual([...asked].sort(), multiSweParsers.map(({ name }) => name).sort());
});

test("a log that says two things of one test counts nothing, and a skipped test is none that passed", () => {
  const cargo = parserNamed("multi_swe_cargo");
  const twice = cargo.parse(marked("test a ... ok\ntest a ... FAILED\n"), "");
  assert.match(twice.problem ?? "", /^the log says PASSED and FAILED of "a"$/);
  assert.equal(twice.complete, false);
  const { outcomes } = cargo.parse(marked("test a ... ignored\ntest b ... ok\n"), "");
  assert.deepEqual(
    ["a", "b", "constructor"].map((name) => cargo.counts?.(outcomes, name, "pass_to_pass")),
    [false, true, false],
  );
});

test("a log that is made to be slow is read in a time that grows with its length", () => {
  const hostile = [
    "{",
    '{"a":',
    "✓ 1",
    "✓ (",
    "> Task :a > ",
    "PASS (",
    "1/1 Test #1: ..",
    " ",
    "Running  ",
    "FAIL: ",
    "\x1b[0",
    "test (1",
  ];
  for (const parser of multiSweParsers)
    for (const part of hostile) {
      const log = `${part.repeat(4_000 / part.length)}\n`.repeat(20);
      assert.ok(parser.parse(marked(log), ""), `${parser.name}: ${part}`);
    }
});
