/** Which lines tell a solution, and how many of them are a leak. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { leaksAt, linesIn, linesOf, namesOf } from "../../../graders/admission/telling-lines.ts";

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
