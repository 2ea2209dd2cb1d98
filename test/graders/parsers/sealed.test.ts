import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { tape } from "../../../graders/parsers/sealed.ts";

const key = "of this grading";
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const sealedRow = (row: object): string => {
  const text = JSON.stringify(row);
  return `@report ${sha256(key + sha256(key + text))} ${text}`;
};

test("a test's name may hold the line ends of Unicode: the report is whole", () => {
  const name = "splits \u2028 and \u2029 and \u0085";
  const rows = [
    { kind: "begun", name: null, outcome: null, sequence: 0 },
    { kind: "test", name, outcome: "passed", sequence: 1 },
    { kind: "complete", name: null, outcome: null, sequence: 2 },
  ];
  const report = tape.parse(rows.map(sealedRow).join("\n"), key);
  assert.deepEqual([report.complete, report.problem, [...report.outcomes]], [true, null, [[name, "passed"]]]);
});
