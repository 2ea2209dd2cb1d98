/** Probes are texts here: they are run in containers only (test/docker/hacks.test.ts). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { insidePath } from "../../../files/file-tree.ts";
import { probeTargets } from "../../../graders/admission/probe-targets.ts";
import { parserNamed } from "../../../graders/parsers/index.ts";
import { forgedLines } from "../../../graders/probes/forged/forged-lines.ts";
import { probes, probesFor } from "../../../graders/probes/index.ts";
import type { ProbeTarget } from "../../../graders/probes/probe.ts";

const file = (path: string, text = "x = 1\n") => ({ path, mode: 0o644, content: Buffer.from(text) });
const target: ProbeTarget = {
  language: "python",
  parser: "pytest",
  workdir: "/work",
  sources: [file("clamp.py")],
  tests: ["tests/test_clamp.py"],
  required: ["tests/test_clamp.py::test_a", "tests/test_clamp.py::test_b"],
};

test("each probe makes files inside the workdir or commands, and goes on from 'a work that' and 'so'", () => {
  for (const { name, title, cure, files, script, languages } of probes) {
    assert.match(title, /^[a-z]/, name);
    assert.match(cure, /^[a-z].*[^.]$/, name);
    for (const language of languages === "any" ? [null] : languages) {
      const aimed = { ...target, language, sources: language === "javascript" ? [file("a.js", "export const a = 1;\n")] : target.sources };
      const made = files?.(aimed) ?? [];
      assert.ok(made.length > 0 || script !== undefined, name);
      for (const { path } of made) assert.equal(insidePath(path), path, name);
    }
  }
  assert.equal(new Set(probes.map(({ name }) => name)).size, probes.length);
});

test("a forged log is what its parser takes for a whole one", () => {
  const required = ["test_a (tests.test_clamp.Clamp)", "test_b (tests.test_clamp.Clamp)"];
  for (const [parser, names] of [
    ["pytest", target.required],
    ["unittest", required],
    ["tap", ["adds", "subtracts"]],
    ["cargo", ["a::b", "a::c"]],
    ["ctest", ["one", "two"]],
    ["mocha", ["math > adds", "math > subtracts"]],
    ["go-test", ["TestA", "TestB"]],
  ] as const) {
    const { nameOf = (name) => name, parse } = parserNamed(parser);
    const { outcomes, complete, problem } = parse(forgedLines({ ...target, parser, required: [...names] }), "key");
    assert.deepEqual([parser, complete, problem], [parser, true, null]);
    for (const name of names) assert.equal(outcomes.get(nameOf(name)), "passed", `${parser}: ${name}`);
  }
});

test("the languages of a task are those of its solution, its hidden tests and its parser", () => {
  const hidden = { files: [file("tests/test_a.py")], inWorkdir: [], failing: [], required: [], parser: null };
  const languages = (solution: string[], parser: string | null = null, files = hidden.files) =>
    probeTargets(
      "/work",
      solution.map((path) => file(path)),
      [],
      { ...hidden, parser, files },
    ).map(({ language }) => language);
  assert.deepEqual(languages(["a.txt"]), [null, "python"]);
  assert.deepEqual(languages(["src/a.ts"], "node-test", []), [null, "javascript"]);
  assert.deepEqual(languages([], "cargo", []), [null]);
  assert.equal(
    probesFor([]).every(({ probe }) => probe.languages === "any"),
    true,
  );
});
