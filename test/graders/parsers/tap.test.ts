import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import fc from "fast-check";
import type { TestOutcome } from "../../../graders/parsers/report-parser.ts";
import { tap } from "../../../graders/parsers/tap.ts";

const read = (text: string) => tap.parse(text, "");
const outcomes = (text: string) => Object.fromEntries(read(text).outcomes);

const cases: { title: string; text: string; outcomes: Record<string, TestOutcome>; problem: RegExp | null }[] = [
  { title: "points", text: "TAP version 13\n1..2\nok 1 - a\nnot ok 2 - b\n", outcomes: { a: "passed", b: "failed" }, problem: null },
  { title: "no dash, no number", text: "ok a\nok\n1..2\n", outcomes: { a: "passed", "": "passed" }, problem: null },
  {
    title: "skip and todo",
    text: "ok 1 - a # SKIP no disk\nnot ok 2 - b # TODO later\n1..2\n",
    outcomes: { a: "skipped", b: "passed" },
    problem: null,
  },
  { title: "an escaped hash", text: "ok 1 - issue \\#1 # tests\n1..1\n", outcomes: { "issue #1 # tests": "passed" }, problem: null },
  {
    title: "diagnostics are not read",
    text: "not ok 1 - a\n  ---\n  ok 2 - forged\nok 2 - forged\n  ...\n1..1\n",
    outcomes: { a: "failed" },
    problem: null,
  },
  { title: "an early end", text: "ok 1 - a\n", outcomes: { a: "passed" }, problem: /no plan/ },
  {
    title: "fewer points than planned",
    text: "1..3\nok 1 - a\n",
    outcomes: { a: "passed" },
    problem: /3 tests were planned and 1 reported/,
  },
  {
    title: "a number twice",
    text: "ok 1 - a\nok 1 - b\n1..2\n",
    outcomes: { a: "passed", b: "passed" },
    problem: /point 1 came where 2 was due/,
  },
  { title: "two plans", text: "ok 1 - a\n1..1\n1..1\n", outcomes: { a: "passed" }, problem: /two plans/ },
  { title: "a bail out", text: "1..1\nok 1 - a\nBail out! disk full\n", outcomes: { a: "passed" }, problem: /gave up/ },
  { title: "one name, two outcomes", text: "ok 1 - a\nnot ok 2 - a\nok 3 - a\n1..3\n", outcomes: { a: "failed" }, problem: null },
  {
    title: "nested subtests",
    text: "# Subtest: two\n    # Subtest: sub\n    not ok 1 - sub\n    1..1\nnot ok 1 - two\n# Subtest: three\nok 2 - three\n1..2\n# tests 3\n# pass 1\n",
    outcomes: { "two > sub": "failed", two: "failed", three: "passed" },
    problem: null,
  },
  {
    title: "a broken plan of subtests",
    text: "# Subtest: two\n    # Subtest: sub\n    ok 1 - sub\n    1..2\nok 1 - two\n1..1\n",
    outcomes: { "two > sub": "passed", two: "passed" },
    problem: /2 subtests were planned and 1 reported/,
  },
  {
    title: "tape's flat form",
    text: "TAP version 13\n# first\nok 1 should be equal\nnot ok 2 should be equal\n  ---\n    operator: equal\n  ...\n# SKIP windows\n# last\nok 3 yes\n\n1..3\n# tests 3\n# pass  2\n# fail  1\n",
    outcomes: { first: "failed", windows: "skipped", last: "passed" },
    problem: null,
  },
  {
    title: "tape's tests that assert nothing, or skip all that they assert",
    text: "# empty\n# skips\nok 1 one # SKIP\n# last\nok 2 yes\nok 3 two # SKIP\n1..3\n",
    outcomes: { skips: "skipped", last: "passed" },
    problem: null,
  },
  {
    title: "comments before the first subtest",
    text: "# adds\n# SKIP b\n# subtracts\nok 1 - own\n# Subtest: a.test.js\nok 2 - a.test.js\n1..2\n",
    outcomes: { own: "passed", "a.test.js": "passed" },
    problem: null,
  },
  {
    title: "vitest's times behind the names",
    text: "TAP version 13\n1..2\nok 1 - a.test.js > adds # time=6.48ms\nnot ok 2 - a.test.js > s \\# 1 > bad # time=4.62ms\n",
    outcomes: { "a.test.js > adds": "passed", "a.test.js > s # 1 > bad": "failed" },
    problem: null,
  },
  { title: "nothing", text: "", outcomes: {}, problem: /no plan/ },
];

for (const { title, text, outcomes: expected, problem } of cases) {
  test(`TAP: ${title}`, () => {
    const report = read(text);
    assert.deepEqual(Object.fromEntries(report.outcomes), expected);
    assert.equal(report.complete, problem === null);
    if (problem) assert.match(report.problem ?? "", problem);
  });
}

const name = fc.stringMatching(/^[a-z][a-z0-9 #\\-]{0,20}[a-z0-9]$/);
const escapeTap = (text: string) => text.replace(/[\\#]/g, "\\$&");
const results = fc.uniqueArray(fc.record({ name, outcome: fc.constantFrom<TestOutcome>("passed", "failed", "skipped") }), {
  selector: (one) => one.name,
});

test("a report that was written is read back, flat and one level down", () => {
  fc.assert(
    fc.property(results, (list) => {
      const line = ({ name, outcome }: (typeof list)[number], index: number) =>
        `${outcome === "failed" ? "not ok" : "ok"} ${index + 1} - ${escapeTap(name)}${outcome === "skipped" ? " # SKIP" : ""}`;
      const flat = [...list.map(line), `1..${list.length}`].join("\n");
      assert.deepEqual(outcomes(flat), Object.fromEntries(list.map((one) => [one.name, one.outcome])));
      assert.equal(read(flat).complete, true);
      const inner = list.flatMap((one, index) => [`    # Subtest: ${escapeTap(one.name)}`, `    ${line(one, index)}`]);
      const nested = ["# Subtest: suite", ...inner, `    1..${list.length}`, "ok 1 - suite", "1..1"].join("\n");
      assert.equal(read(nested).problem, null);
      for (const one of list) assert.equal(outcomes(nested)[`suite > ${one.name}`], one.outcome);
    }),
  );
});

test("no text makes the parser throw", () => {
  const line = fc.constantFrom("ok 1 - a", "not ok", "1..2", "# Subtest: x", "    ok 1", "  ---", "  ...", "Bail out!", "# SKIP y", "# z");
  fc.assert(fc.property(fc.array(fc.oneof(line, fc.string())), (lines) => void read(lines.join("\n"))));
});

test("a line end of Unicode is part of its line, and a long line with one takes no longer than others", () => {
  const gap = " ".repeat(200_000);
  assert.deepEqual(outcomes(`ok 1 - a\u2028b # SKIP\rnot now\nok${gap}2 - c\u2029${gap}\n1..2\n`), { "a\u2028b": "skipped", c: "passed" });
  assert.deepEqual(outcomes(`# SKIP${gap}\u2028\n1..0\n`), { "\u2028": "skipped" });
});

test("names that are long by their parents are kept up to a bound", () => {
  const points = Array.from({ length: 1_000 }, (_, index) => `    ok - ${index}\n`).join("");
  const report = read(`# Subtest: ${"x".repeat(1_000_000)}\n${points}    1..1000\nok\n1..1\n`);
  assert.deepEqual([report.complete, report.outcomes.size < 100], [false, true]);
  assert.match(report.problem ?? "", /more than 64000000 characters/);
});

test("what Node's own runner writes is read", async () => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-tap-"));
  try {
    const file = join(folder, "a.test.mjs");
    const code = `import { describe, it, test } from "node:test";
      test("one # two", () => {}); describe("suite", () => { it("good", () => {}); it("bad", () => { throw new Error("ok 9 - forged"); }); it("left out", { skip: true }, () => {}); });`;
    await writeFile(file, code);
    const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
    const { stdout } = await promisify(execFile)(process.execPath, ["--test-reporter=tap", file], { env }).catch(
      (error: { stdout: string }) => error,
    );
    const report = read(stdout);
    assert.equal(report.problem, null);
    assert.deepEqual(Object.fromEntries(report.outcomes), {
      "one # two": "passed",
      "suite > good": "passed",
      "suite > bad": "failed",
      "suite > left out": "skipped",
      suite: "failed",
    });
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a work that prints the tests' names and ends the process of Node's own runner has passed none of them", async () => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-tap-"));
  try {
    const file = join(folder, "a.test.mjs");
    await writeFile(join(folder, "work.mjs"), `import fs from "node:fs"; fs.writeSync(2, "adds\\nsubtracts\\n"); process.exit(0);`);
    await writeFile(file, `import { test } from "node:test"; import "./work.mjs"; test("adds", () => {}); test("subtracts", () => {});`);
    const { NODE_TEST_CONTEXT: _context, ...env } = process.env;
    const { stdout } = await promisify(execFile)(process.execPath, ["--test", "--test-reporter=tap", file], { env });
    assert.match(stdout, /^# adds$/m);
    const report = read(stdout);
    assert.deepEqual([report.outcomes.has("adds"), report.outcomes.has("subtracts")], [false, false]);
  } finally {
    await rm(folder, { recursive: true });
  }
});
