/** The page of reasons is what the code declares, and each reason stands on its own. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { callOutcomes, edgeCauses, renderCauses, uncountedReasons } from "../../base/schema/reasons/calls.ts";
import { groupReasons, maskReasons, rolloutReasons } from "../../base/schema/reasons/left-out.ts";
import type { Meaning } from "../../base/schema/reasons/meaning.ts";
import { teacherReasons } from "../../base/schema/reasons/teacher.ts";
import { formatReasons, recordedReasons, rowReasons, trainerReasons, untrainedReasons } from "../../base/schema/reasons/untrained.ts";
import { path, reasonsPage } from "./reasons-page.ts";

test("docs/reasons.md says what the code declares", async () => {
  assert.equal(await readFile(path, "utf8"), reasonsPage(), "run: node test/contracts/reasons-page.ts");
});

test("each reason is one plain sentence, and its cure goes on from it", () => {
  const tables = [
    ...[untrainedReasons, rolloutReasons, groupReasons, maskReasons, callOutcomes, uncountedReasons, edgeCauses, renderCauses],
    teacherReasons,
  ];
  for (const [word, { what, cure }] of tables.flatMap((table) => Object.entries<Meaning>(table))) {
    assert.match(what, /^[A-Z].*\.$/, word);
    if (cure !== null) assert.doesNotMatch(cure, /^[A-Z]|\.$/, word);
  }
});

test("no reason for untrained tokens is declared twice", () => {
  const words = [recordedReasons, trainerReasons, rowReasons, formatReasons].flatMap((table) => Object.keys(table));
  assert.deepEqual(words, Object.keys(untrainedReasons));
});
