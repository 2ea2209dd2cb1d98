/** Which lines tell a solution, and how many of them are a leak. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { leaksAt, linesIn, linesOf, namesOf, outputsOf } from "../../../graders/admission/telling-lines.ts";
import { graderOf, specOfGrader } from "../../../graders/registry.ts";

const file = (text: string) => [{ path: "a", mode: 0o644, content: Buffer.from(text) }];

test("lines that only the solution has are sought, long enough to stand nowhere by chance", () => {
  const before = file("export const clamp = (value) => value;\n");
  const after = file("export const clamp = (value) => value;\n  return Math.min(high, Math.max(low, value));\n}\n  return value;\n");
  assert.deepEqual(linesOf("solution", before, after).lines, ["return Math.min(high, Math.max(low, value));"]);
  assert.deepEqual(linesOf("solution", [], file("\0binary, and long enough for a line\n")).lines, []);
});

test("two of three lines in one place are a leak, and one of three is none", () => {
  const sought = [{ what: "solution" as const, lines: ["first telling line", "second telling line", "third telling line"] }];
  const at = (text: string) => leaksAt("place", linesIn(text, sought), sought);
  assert.deepEqual(at("x first telling line y"), []);
  assert.deepEqual(at("first telling line\nthird telling line"), [{ what: "solution", place: "place", found: 2, of: 3 }]);
  assert.deepEqual(leaksAt("place", new Set(), [{ what: "tests", lines: [] }]), []);
});

test("names of tests are sought without file, suite and parameters, where no delivered file has them", () => {
  const names = ["tests/a.py::TestA::test_new_thing[1]", "suite > folds all accents", "short", "pkg::test_known_thing"];
  assert.deepEqual(namesOf(names, file("def test_known_thing")).lines, ["test_new_thing", "folds all accents"]);
});

test("lines of expected outputs are sought where they tell them: no number, no word, no echo of the input, no example of the instruction", () => {
  const of = (texts: string[], given = "", instruction = "") =>
    outputsOf(
      texts.map((text) => ({ text, given })),
      instruction,
    ).lines;
  assert.deepEqual(of(["0", "true", "42\n", "Not found", "incomprehensibilities", "12345678901234567890"]), []);
  assert.deepEqual(of(["3 apples, 2.50\n", "total: 17.25 euro\n0\n"]), ["3 apples, 2.50", "total: 17.25 euro"]);
  assert.deepEqual(of(["Hello, world!"]), [], "one short line stands anywhere");
  assert.deepEqual(of(["the quick brown fox jumps"], "the quick brown fox jumps over"), []);
  assert.deepEqual(of(["the quick brown fox jumps"], "", "It prints: the quick brown fox jumps"), []);
});

test("cases and answers say what they expect, and a pattern is no text that could be copied", () => {
  const cases = graderOf({ kind: "cases" });
  const all = [{ args: ["a"], stdin: "b", stdout: "c" }, { stdout: { contains: "d" } }, { stdout: { matches: "e" } }, { exit: 1 }];
  const spec = specOfGrader({ kind: "cases", command: ["x"], cases: all.map((one, at) => ({ ...one, name: String(at) })) });
  assert.deepEqual(cases.expected?.(spec), [
    { text: "c", given: "a\nb" },
    { text: "d", given: "" },
  ]);
  const answer = specOfGrader({ kind: "answer", exact: ["f", "g"] });
  assert.deepEqual(
    graderOf(answer)
      .expected?.(answer)
      .map(({ text }) => text),
    ["f", "g"],
  );
});
