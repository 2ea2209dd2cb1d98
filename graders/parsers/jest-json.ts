/** The one line of JSON that `jest --json` and `vitest --reporter=json` print. A name is `suite > test`. */
import { z } from "zod";
import { readJson } from "../../base/schema/read-json.ts";
import { fullName, type ReportParser, type TestOutcome } from "./report-parser.ts";
import { jsSteering } from "./steering/steering-files.ts";
import { TestList } from "./test-list.ts";

export const jestJson: ReportParser = {
  name: "jest-json",
  title: "the JSON of jest --json and vitest --reporter=json",
  runner: null,
  source: "stdout",
  sealed: false,
  steeredBy: jsSteering,
  parse(text) {
    const list = new TestList();
    read(text, list);
    return list.report();
  },
};

const Case = z.looseObject({ ancestorTitles: z.array(z.string()), title: z.string(), status: z.string() });
const JestReport = z.looseObject({
  numPassedTests: z.number(),
  numFailedTests: z.number(),
  testResults: z.array(z.looseObject({ assertionResults: z.array(Case) })),
});

function read(text: string, list: TestList): void {
  const found = text.split("\n").filter((line) => /^\{"num\w+":/.test(line));
  list.expectOne("line of JSON", found.length);
  const report = found.length === 1 ? reportOf(found[0] as string) : null;
  if (report === null) {
    list.complain("the line of JSON is not what jest or vitest writes");
    return;
  }
  const cases = report.testResults.flatMap(({ assertionResults }) => assertionResults);
  const count = (status: string) => cases.filter((one) => one.status === status).length;
  list.expect("passed", report.numPassedTests, count("passed"));
  list.expect("failed", report.numFailedTests, count("failed"));
  for (const { ancestorTitles, title, status } of cases) list.add(fullName([...ancestorTitles, title]), outcomeOf(status));
}

function outcomeOf(status: string): TestOutcome {
  if (status === "passed") return "passed";
  return status === "failed" ? "failed" : "skipped";
}

function reportOf(line: string): z.infer<typeof JestReport> | null {
  try {
    return JestReport.safeParse(readJson(line)).data ?? null;
  } catch {
    return null;
  }
}
