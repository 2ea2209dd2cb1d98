/**
 * The log of `go test -v`. A test is known by its name, and by package and name, for packages may have tests of one name.
 * Go counts nothing in this form: a work that prints the beginning and the end of a test makes one up. `go-test-json`
 * knows what was printed.
 */
import { logParser } from "./log-parser.ts";
import { fullName, type TestOutcome } from "./report-parser.ts";
import type { TestList } from "./test-list.ts";

/** A test file that the work added may hold a TestMain, which decides what runs and what is printed. */
export const goSteering = ["**/*_test.go"];

export const goTest = logParser({ name: "go-test", title: "the log of go test -v", steeredBy: goSteering, read });

const outcomes = new Map<string, TestOutcome>([
  ["PASS", "passed"],
  ["FAIL", "failed"],
  ["SKIP", "skipped"],
]);

/** Tests of one package: the names that began, and what came of them. */
type Package = { begun: string[]; ended: { name: string; outcome: TestOutcome }[] };

function read(lines: string[], list: TestList): void {
  let packages = 0;
  let open: Package = { begun: [], ended: [] };
  for (const line of lines) {
    const run = /^=== RUN {3}(\S+)$/.exec(line);
    const result = /^ *--- (PASS|FAIL|SKIP): (\S+) \([\d.]+s\)$/.exec(line);
    const end = /^(ok {2}|FAIL)\t(\S+)[\t ]/.exec(line);
    if (run) open.begun.push(run[1] as string);
    else if (result) open.ended.push({ name: result[2] as string, outcome: outcomes.get(result[1] as string) as TestOutcome });
    else if (end) {
      packages++;
      addPackage(list, end[2] as string, end[1] === "FAIL", open);
      open = { begun: [], ended: [] };
    }
  }
  if (packages === 0) list.expectOne("result of a package", 0);
  if (open.begun.length + open.ended.length > 0) list.complain("the log ends before the result of a package");
}

function addPackage(list: TestList, path: string, failed: boolean, { begun, ended }: Package): void {
  const waiting = new Map<string, number>();
  for (const name of begun) waiting.set(name, (waiting.get(name) ?? 0) + 1);
  for (const { name, outcome } of ended) {
    const left = (waiting.get(name) ?? 0) - 1;
    if (left < 0) list.complain(`the test ${name.slice(0, 200)} ended more often than it began`);
    waiting.set(name, left);
    addTest(list, path, name, outcome);
  }
  // A test that began twice and ended once has not passed twice.
  for (const { name } of ended) if ((waiting.get(name) ?? 0) > 0) addTest(list, path, name, "failed");
  if (ended.length > 0)
    checkPackage(
      list,
      path,
      failed,
      ended.some(({ outcome }) => outcome === "failed"),
    );
}

/** A package fails by a test of its own. Where none of them failed, one may have printed a pass and ended the process. */
export function checkPackage(list: TestList, path: string, failed: boolean, byTest: boolean): void {
  if (failed !== byTest)
    list.complain(
      `${failed ? "the package" : "a test of"} ${path.slice(0, 200)} failed, and ${failed ? "none of its tests did" : "the package did not"}`,
    );
}

export function addTest(list: TestList, path: string, name: string, outcome: TestOutcome): void {
  list.add(name, outcome);
  list.add(fullName([path, name]), outcome);
}
