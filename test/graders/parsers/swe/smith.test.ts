/** SWE-smith's reading of pytest -v against its own profile's (`smith/record.py` asked it). */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parserNamed } from "../../../../graders/parsers/registry.ts";
import { marked, readRecorded, recordedLog } from "./recorded-answers.ts";

const kept = join(import.meta.dirname, "smith");
const { header, answers } = readRecorded(kept);
const samples = JSON.parse(readFileSync(join(kept, "samples.json"), "utf8")) as Record<string, string>;
const outcomeOf = (status: string) => (status === "SKIPPED" ? "skipped" : /^(?:PASSED|XFAIL)$/.test(status) ? "passed" : "failed");

test(`swesmith_pytest reads ${answers.length} logs as ${header.commit} does`, () => {
  for (const answer of answers) {
    const { outcomes } = parserNamed("swesmith_pytest").parse(marked(recordedLog(answer, samples)), "");
    const expected = Object.entries(answer.statuses ?? {}).map(([name, status]) => [name, outcomeOf(status)] as const);
    assert.deepEqual(new Map([...outcomes].sort()), new Map(expected.sort()), answer.log ?? "the sample");
  }
});
