/** The report parsers; a new one is a file here and a line below. */
import { cargo } from "./cargo.ts";
import { ctest } from "./ctest.ts";
import { goTest } from "./go-test.ts";
import { goTestJson } from "./go-test-json.ts";
import { gradle } from "./gradle.ts";
import { jest } from "./jest.ts";
import { jestJson } from "./jest-json.ts";
import { junit } from "./junit.ts";
import { maven } from "./maven.ts";
import { mocha } from "./mocha.ts";
import { pytest } from "./pytest.ts";
import type { ReportParser } from "./report-parser.ts";
import { nodeTest, tape, withPythonRunner } from "./sealed.ts";
import { sweParsers } from "./swe/index.ts";
import { tap } from "./tap.ts";
import { unittest } from "./unittest.ts";
import { vitest } from "./vitest.ts";

/** Names, titles and readers. The name of a log parser is a plain text to the compiler. */
export const parsers: readonly ReportParser[] = [
  tape,
  nodeTest,
  tap,
  junit,
  withPythonRunner(pytest, "pytest_runner"),
  withPythonRunner(unittest, "unittest_runner"),
  goTest,
  goTestJson,
  cargo,
  vitest,
  jest,
  jestJson,
  mocha,
  maven,
  gradle,
  ctest,
  ...sweParsers,
];

/** The schema has checked the name, so it is in the list. */
export function parserNamed(name: ReportParser["name"]): ReportParser {
  return parsers.find((parser) => parser.name === name) as ReportParser;
}

/** The parser of a test command: the runner's own where the command names one. */
export function parserOf({ parser, command }: { parser: ReportParser["name"]; command: readonly string[] }): ReportParser {
  const named = parserNamed(parser);
  return command.includes("{runner}") ? (named.sealedForm ?? named) : named;
}

/** Whether a runner of ours can have the work loaded by a process of its own. */
export function canRunApart(spec: { parser: ReportParser["name"]; command: readonly string[] }): boolean {
  return parserOf(spec).apart === true;
}
