/** Reports of our own runners (graders/runners/): rows with a seal, see sealed-report.ts there for what it stops. */
import { createHash, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { readJson } from "../../base/schema/read-json.ts";
import { addOutcome, type Report, type ReportParser, type TestOutcome } from "./report-parser.ts";
import { jsSteering } from "./steering/steering-files.ts";

export const tape: ReportParser = {
  name: "tape",
  title: "tape, run by Alidade's own runner with a sealed report",
  runner: "tape-runner",
  source: "stdout",
  sealed: true,
  apart: true,
  code: /\.[cm]?js$/,
  steeredBy: jsSteering,
  parse: parseSealed,
};

export const nodeTest: ReportParser = {
  ...tape,
  name: "node-test",
  title: "node:test, run by Alidade's own runner with a sealed report",
  runner: "node-test-runner",
};

/** A Python framework's log parser, with a runner of ours for the commands that name one. */
export function withPythonRunner(parser: ReportParser, runner: string): ReportParser {
  const sealedForm: ReportParser = {
    ...parser,
    name: `${parser.name}-sealed`,
    runner,
    language: "python",
    source: "stdout",
    sealed: true,
    apart: true,
    hidesWhereApart: true,
    parse: (text, key) => parseSealed(text, key, parser.nameOf),
  };
  return { ...parser, sealedForm };
}

const Row = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("begun"), name: z.null(), outcome: z.null(), sequence: z.number() }),
  z.strictObject({ kind: z.literal("test"), name: z.string(), outcome: z.enum(["passed", "failed", "skipped"]), sequence: z.number() }),
  z.strictObject({ kind: z.literal("complete"), name: z.null(), outcome: z.null(), sequence: z.number() }),
]);

/** Rows without a valid seal are what the work printed: ignored. A gap or a repetition among valid ones breaks the report. */
function parseSealed(text: string, key: string, nameOf = (name: string) => name): Report {
  const outcomes = new Map<string, TestOutcome>();
  const report: Report = { outcomes, complete: false, begun: false, problem: null };
  let sequence = 0;
  for (const line of text.split("\n")) {
    const row = openRow(line, key);
    if (row === null) continue;
    if (row.sequence !== sequence++) return { ...report, complete: false, problem: "rows of the report are missing or repeated" };
    if (row.kind === "begun") report.begun = true;
    else if (row.kind === "complete") report.complete = true;
    else addOutcome(outcomes, nameOf(row.name), row.outcome);
  }
  if (!report.begun) report.problem = "the runner reported nothing";
  else if (!report.complete) report.problem = "the report ends early: the test process ended before its tests did";
  return report;
}

function openRow(line: string, key: string): z.infer<typeof Row> | null {
  const found = /^@report ([0-9a-f]{64}) (\{.*\})$/s.exec(line);
  if (!found) return null;
  const [, seal, text] = found as unknown as [string, string, string];
  const expected = createHash("sha256")
    .update(key)
    .update(hex(key + text))
    .digest();
  if (!timingSafeEqual(expected, Buffer.from(seal, "hex"))) return null;
  const row = Row.safeParse(readJson(text));
  return row.success ? row.data : null;
}

function hex(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
