/** The parsers of SWE-rebench-V2 against what its own of these names say (`record.py` asked them). */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parserNamed } from "../../../../../graders/parsers/registry.ts";
import { rebenchParsers } from "../../../../../graders/parsers/swe/rebench-v2/index.ts";
import { marked, readRecorded, recordedLog } from "../recorded-answers.ts";

const { header, answers } = readRecorded(import.meta.dirname);
const samples = JSON.parse(readFileSync(join(import.meta.dirname, "samples.json"), "utf8")) as Record<string, string>;
const outcomeOf = (status: string) => (status === "SKIPPED" ? "skipped" : status === "PASSED" ? "passed" : "failed");

for (const [name, some] of Map.groupBy(answers, ({ parser }) => parser))
  test(`rebench_v2.${name} reads ${some.length} logs as SWE-rebench-V2 at ${header.commit?.slice(0, 8)} does`, () => {
    for (const answer of some) {
      const report = parserNamed(`rebench_v2.${name}`).parse(marked(recordedLog(answer, samples)), "");
      const about = answer.log ?? "the sample";
      if (answer.statuses === null) assert.match(report.problem ?? "", /^the log has /, about);
      else {
        const expected = Object.entries(answer.statuses).map(([test, status]) => [test, outcomeOf(status)] as const);
        assert.deepEqual(new Map([...report.outcomes].sort()), new Map(expected.sort()), about);
      }
    }
  });

test("every parser of the set is held against its original", () => {
  const asked = new Set(answers.map(({ parser }) => `rebench_v2.${parser}`));
  const names = rebenchParsers.map(({ name }) => name).filter((name) => name.startsWith("rebench_v2."));
  assert.deepEqual([...asked].sort(), names.sort());
  assert.equal(names.length, 94);
});

test("a test that passes and errors in its teardown did not pass, and a skipped one did not either", () => {
  const { parse, counts } = parserNamed("rebench_v2.parse_log_pytest");
  const { outcomes } = parse(marked("PASSED t.py::a\nERROR t.py::a - teardown\nSKIPPED t.py::b\nPASSED t.py::c (3ms)\n"), "");
  assert.deepEqual(
    ["t.py::a", "t.py::b", "t.py::c"].map((name) => counts?.(outcomes, name, "pass_to_pass")),
    [false, false, true],
  );
  const cpp = parserNamed("rebench_v2.parse_log_cpp_v3");
  const botan = cpp.parse(marked("AES-128 ran 17370 tests in 34.33 msec all ok\n"), "");
  assert.equal(cpp.counts?.(botan.outcomes, "AES-128 ran 17370 tests in 29.01 msec all ok", "fail_to_pass"), true);
});

test("a log that is made to be slow is read in a time that grows with its length", () => {
  const hostile = [
    "a ",
    " ",
    "(",
    "( ",
    "a (",
    "[",
    " [",
    ". ",
    "= ",
    "1",
    "1 .",
    "<testcase ",
    "<",
    "_ ",
    ":",
    " : ",
    "#",
    "::",
    "} ",
    "ok 1 - a {",
  ];
  const heads = [
    "",
    "✓ ",
    "[info] - ",
    "  Passed ",
    "* test ",
    "1/1 Test #1: ",
    "ok 1 - ",
    "[OK] ",
    "1) test ",
    "<testcase ",
    "x PASSED [",
  ];
  for (const parser of rebenchParsers)
    for (const head of heads)
      for (const part of hostile) parser.parse(marked(`${`${head}${part.repeat(4_000)}`.slice(0, 4_000)}\n`.repeat(3)), "");
});
