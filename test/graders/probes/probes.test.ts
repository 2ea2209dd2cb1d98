/** Probes are texts here: they are run in containers only (test/docker/hacks.test.ts). */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { insidePath, matchesAny } from "../../../base/files/file-tree.ts";
import { probeTargets } from "../../../graders/admission/probe-targets.ts";
import type { LooseText } from "../../../graders/grader.ts";
import { parserNamed } from "../../../graders/parsers/index.ts";
import { rewrittenTests } from "../../../graders/probes/changed-tests.ts";
import { everything } from "../../../graders/probes/forged/everything.ts";
import { forgedLines } from "../../../graders/probes/forged/forged-lines.ts";
import { saysEverything } from "../../../graders/probes/hollow-checks.ts";
import { probes, probesFor } from "../../../graders/probes/index.ts";
import { plantedMakefile } from "../../../graders/probes/left-behind.ts";
import type { ProbeTarget } from "../../../graders/probes/probe.ts";
import { need } from "../../needs.ts";

const file = (path: string, text = "x = 1\n") => ({ path, mode: 0o644, content: Buffer.from(text) });
const target: ProbeTarget = {
  language: "python",
  parser: "pytest",
  workdir: "/work",
  sources: [file("clamp.py")],
  tests: ["tests/test_clamp.py"],
  required: ["tests/test_clamp.py::test_a", "tests/test_clamp.py::test_b"],
  instruction: "Print how many tickets are closed.",
  loose: [{ text: "7 tickets", isPattern: false, longest: 10_000, file: null }],
  solved: [file("clamp.py")],
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

test("what says everything fits into what is looked into, with each number in the instruction's own words", () => {
  const sought = (text: string, isPattern = false) => ({ text, isPattern, longest: 10_000, file: null });
  const said = (...texts: LooseText[]) => everything(target.instruction, texts);
  for (const text of ["3", "97", "42 tickets", "7 closed"]) assert.ok(said(sought(text)).includes(text), text);
  assert.match(said(sought("^12 tickets$", true)), /^12 tickets$/m);
  assert.match(said(sought("\\b12\\s+tickets\\b", true)), /\b12\s+tickets\b/);
  assert.equal(said(sought("7 bottles")).includes("7 bottles"), false, "a word that no instruction has is not guessed");
  assert.equal(said(sought("7 tickets"), { ...sought("x"), longest: 40 }).length, 40);
});

test("what says everything is put where it is looked for: programs that print it, and files, and nothing for a task that compares", () => {
  const [loose] = target.loose as [LooseText];
  const pathsFor = (sought: LooseText[]) => saysEverything.files?.({ ...target, loose: sought }).map(({ path }) => path);
  assert.deepEqual(pathsFor([loose]), ["clamp.py"]);
  assert.deepEqual(
    pathsFor([
      { ...loose, file: "out/a.txt" },
      { ...loose, file: "/work/b.txt" },
      { ...loose, file: "/etc/c" },
    ]),
    ["out/a.txt", "b.txt"],
  );
  assert.deepEqual(pathsFor([]), []);
});

test("what probes add to a source of C compiles as C99, also where warnings are errors", async (t) => {
  if (!(await need(t, "gcc"))) return;
  const aimed = {
    ...target,
    language: "c" as const,
    parser: "tap",
    required: ['a \u0001 ??/ "quoted" é'],
    sources: [file("a.c", "int x;\n")],
    solved: [file("a.c", "int x;\n")],
  };
  const added = [...probes.filter(({ languages }) => languages.includes("c")), saysEverything].map(({ name, files }) => ({
    name,
    source: files?.(aimed)?.[0],
  }));
  const sources = added.filter(({ source }) => source?.path === "a.c");
  assert.equal(sources.length, 9);
  for (const { name, source } of sources) {
    // A header is read twice by one run of the compiler.
    const input = `${source?.content}\n${source?.content.toString().replace("int x;", "")}`;
    const flags = ["-fsyntax-only", "-std=c99", "-Wall", "-Wextra", "-Werror", "-x", "c", "-"];
    const { status, stderr } = spawnSync("gcc", flags, { input, encoding: "utf8" });
    assert.equal(status, 0, `${name}: ${stderr}`);
  }
});

test("the languages of a task are those of its solution, its hidden tests and its parser", () => {
  const hidden = { files: [file("tests/test_a.py")], inWorkdir: [], failing: [], required: [], expected: [], loose: [], parser: null };
  const languages = (solution: string[], parser: string | null = null, files = hidden.files) =>
    probeTargets(
      { workdir: "/work", instruction: "" },
      solution.map((path) => file(path)),
      [],
      { ...hidden, parser, files },
    ).map(({ language }) => language);
  assert.deepEqual(languages(["a.txt"]), [null, "python"]);
  assert.deepEqual(languages(["src/a.ts"], "node-test", []), [null, "javascript"]);
  assert.deepEqual(languages(["src/a.c"], "tap", []), [null, "c"]);
  assert.deepEqual(languages([], "ctest", []), [null, "c"]);
  assert.deepEqual(languages([], "cargo", []), [null]);
  assert.equal(
    probesFor([]).every(({ probe }) => probe.languages === "any"),
    true,
  );
});

test("tests are rewritten in the language of the probe alone, and what is planted for ctest has only commands that it knows", () => {
  const tests = ["tests/test_a.py", "tests/run.c", "tests/data.json"];
  const aimed = { ...target, sources: [file("a")], tests, required: ["one"], parser: "ctest" };
  const named = (language: "python" | "c" | "javascript") => {
    const text = rewrittenTests.files?.({ ...aimed, language }).map(({ content }) => content.toString()) ?? [];
    return tests.filter((path) => text.join().includes(path));
  };
  assert.deepEqual([named("python"), named("c"), named("javascript")], [["tests/test_a.py"], ["tests/run.c"], []]);
  const planted = plantedMakefile.files?.({ ...aimed, language: "c" }) ?? [];
  // ctest reads no command of CMake's but a few of its own, and what the work plants for it is not graded with.
  const ofCtest = planted.filter(({ path }) => matchesAny(path, [...(parserNamed("ctest").steeredBy ?? [])]));
  assert.deepEqual(
    ofCtest.map(({ path, content }) => [path, content.toString()]),
    ["", "build/"].map((folder) => [`${folder}CTestTestfile.cmake`, "add_test([==[one]==] /bin/true)\n"]),
  );
});
