/** The table of Multilingual's instances against swebench 4.1's (`multilingual.py` wrote down what those say). */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parserNamed, parsers } from "../../../graders/parsers/registry.ts";
import { multilingualTestsOf } from "../../../tasks/swe/multilingual-tests.ts";

type Instance = { repo: string; version: string; tests: string; parser: { name: string; reads: string[] } };

const text = readFileSync(join(import.meta.dirname, "multilingual.jsonl"), "utf8");
const [header, ...instances] = text
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line)) as [{ swebench: string }, ...Instance[]];
const probe = ">>>>> Start Test Output\nTestA#b = 0.00 s = .\nA step of it ..\n✓ jest\n[PASSED] json\n>>>>> End Test Output\n";

test(`all ${instances.length} instances are built, tested and read as swebench ${header.swebench} does`, () => {
  assert.equal(instances.length, 300);
  for (const { repo, version, tests, parser } of instances) {
    const found = multilingualTestsOf(repo, version);
    assert.ok(found, `${repo} ${version}`);
    assert.equal(createHash("sha256").update(`${found.build}\0${found.command}`).digest("hex").slice(0, 16), tests, `${repo} ${version}`);
    const chosen = parsers.some(({ name }) => name === parser.name) ? parser.name : found.parser;
    assert.equal(found.parser, chosen, `${repo} ${version}`);
    assert.deepEqual([...parserNamed(found.parser).parse(probe, "").outcomes.keys()].sort(), parser.reads, `${repo} ${version}`);
  }
  assert.equal(multilingualTestsOf("google/gson", "constructor"), null);
});
