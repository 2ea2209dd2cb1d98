/** The events of `go test -json`: what a test prints is in an event of its own and ends no test. */
import { z } from "zod";
import { readJson } from "../../base/schema/read-json.ts";
import { addTest, checkPackage, goSteering } from "./go-test.ts";
import type { ReportParser, TestOutcome } from "./report-parser.ts";
import { TestList } from "./test-list.ts";

export const goTestJson: ReportParser = {
  name: "go-test-json",
  title: "the events of go test -json",
  runner: null,
  source: "stdout",
  sealed: false,
  steeredBy: goSteering,
  parse(text) {
    const list = new TestList();
    read(text, list);
    return list.report();
  },
};

const Event = z.looseObject({ Action: z.string(), Package: z.string().optional(), Test: z.string().optional() });

const outcomes = new Map<string, TestOutcome>([
  ["pass", "passed"],
  ["fail", "failed"],
  ["skip", "skipped"],
]);

function read(text: string, list: TestList): void {
  /** Package -> its tests that have begun and not ended. */
  const open = new Map<string, Set<string>>();
  const failed = new Set<string>();
  const ended = new Set<string>();
  let packages = 0;
  for (const line of text.split("\n")) {
    if (!line.startsWith("{")) continue;
    const event = eventOf(line);
    if (event === null) {
      list.complain(`a line is no event of go test: ${line.slice(0, 200)}`);
      continue;
    }
    const { Action: action, Package: path, Test: test } = event;
    if (path === undefined) continue;
    const outcome = outcomes.get(action);
    if (action === "start" || action === "run") {
      const tests = open.get(path) ?? new Set();
      open.set(path, test === undefined ? tests : tests.add(test));
    } else if (outcome !== undefined && test !== undefined) {
      if (!open.get(path)?.delete(test)) list.complain(`the test ${test.slice(0, 200)} ended and had not begun`);
      ended.add(path);
      if (outcome === "failed") failed.add(path);
      addTest(list, path, test, outcome);
    } else if (outcome !== undefined) {
      packages++;
      open.delete(path);
      if (ended.has(path)) checkPackage(list, path, outcome === "failed", failed.has(path));
    }
  }
  if (packages === 0) list.expectOne("result of a package", 0);
  for (const path of open.keys()) list.complain(`the log ends before the result of ${path.slice(0, 200)}`);
}

function eventOf(line: string): z.infer<typeof Event> | null {
  try {
    return Event.safeParse(readJson(line)).data ?? null;
  } catch {
    return null;
  }
}
