/**
 * Reads the logs of Multi-SWE-bench as its own code does (multi-swe-bench at commit 24f493f8). Each repository has a class there,
 * and many classes read in the same way. A skipped test did not pass.
 */
import type { ReportParser } from "../../report-parser.ts";
import { passedOnly, type Statuses, sweParser } from "../status-log.ts";
import { byLines } from "./by-lines.ts";
import { ctest } from "./ctest.ts";
import { go, withoutSubtest } from "./go.ts";
import { gradle, gradleCached, jib, maven, runningLines, withoutColours } from "./java.ts";
import {
  beforeBlank,
  beforeBracket,
  expressJson,
  inBrackets,
  insomnia,
  jest,
  jestFiles,
  materialUi,
  mochaSpec,
  vitest,
} from "./javascript.ts";
import { Said } from "./said.ts";

const cargo = byLines([
  ["PASSED", /^test (\S+) .{3} ok/s],
  ["FAILED", /^test (\S+) .{3} FAILED/s],
  ["SKIPPED", /^test (\S+) .{3} ignored/s],
]);

const catch2 = byLines(
  [
    ["PASSED", /^-- performing test (.+) - success$/s],
    ["PASSED", /^\d+\/\d+ test\s+#\d+: (.+) \.+\s+ passed\s+.+$/s],
    ["FAILED", /^-- performing test (.+) - failed$/s],
    ["FAILED", /^\d+\/\d+ test\s+#\d+: (.+) \.+\*\*\*failed\s+.+$/s],
    ["SKIPPED", /^-- performing test (.+) - skipped$/s],
  ],
  (line) => line.trim().toLowerCase(),
);

const automake = byLines([
  ["PASSED", /^PASS: (\S+)$/],
  ["FAILED", /^FAIL: (\S+)$/],
  ["SKIPPED", /^SKIP: (\S+)$/],
]);

/** Lines of Pony and GoogleTest, with colours and without. */
const boxes = byLines([
  ["PASSED", /^\[ {7}OK \] (\S+)(?: \(.+\))?$/s],
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a colour begins with one
  ["PASSED", /^\x1b\[0;32m\[ {7}OK \] \x1b\[0m(\S+)(?: \(.+\))?$/s],
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a colour begins with one
  ["PASSED", /^\x1b\[92m---- Passed: (\S+)\x1b\[0m$/],
  ["FAILED", /^\[ {2}FAILED {2}\] (\S+)(?: \(.+\))?$/s],
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a colour begins with one
  ["FAILED", /^\x1b\[0;31m\[ {2}FAILED {2}\] \x1b\[0m(\S+)(?: \(.+\))?$/s],
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a colour begins with one
  ["FAILED", /^\x1b\[91m\*\*\*\* FAILED: (\S+)\x1b\[0m$/],
]);

/** zstd's older pull requests name no tests. One line says that all passed. */
function once(line: string): (log: string) => Statuses {
  return (log) => {
    const said = new Said();
    said.add(log.split(line, 3).length === 2 ? "PASSED" : "FAILED", "all tests");
    return said.statuses();
  };
}

const of = (name: string, title: string, read: (log: string) => Statuses, steeredBy?: readonly string[]): ReportParser =>
  sweParser({ name, title: `Multi-SWE: ${title}`, read, rules: passedOnly(), ...(steeredBy && { steeredBy }) });

export const multiSweParsers: readonly ReportParser[] = [
  of("multi_swe_go", "go test -v, names without subtests", go(withoutSubtest), ["**/*_test.go"]),
  of(
    "multi_swe_go_subtests",
    "go test -v",
    go((name) => name),
    ["**/*_test.go"],
  ),
  of("multi_swe_cargo", "cargo test", cargo),
  of("multi_swe_ctest", "CTest", ctest(false)),
  of("multi_swe_ctest_timed", "CTest, failures with their times", ctest(true)),
  of("multi_swe_catch2", "Catch2's build and CTest", catch2),
  of("multi_swe_automake", "Automake's tests", automake),
  of("multi_swe_boxes", "GoogleTest and PonyTest", boxes),
  of("multi_swe_zstd_pool", "zstd 1230 to 1748", once("PASS: all POOL tests")),
  of("multi_swe_zstd_decoder", "zstd 1831 to 2703", once("make[1]: Leaving directory '/home/zstd/doc/educational_decoder'")),
  of("multi_swe_maven", "Maven, a line a class", maven),
  of("multi_swe_maven_coloured", "Maven with colours, a line a class", (log) => maven(withoutColours(log))),
  of("multi_swe_gson", "old Surefire", runningLines),
  of("multi_swe_gradle", "Gradle's tasks and tests", gradle),
  of("multi_swe_gradle_cached", "Gradle's tasks, also of its cache, and tests", gradleCached),
  of("multi_swe_jib", "Gradle's tasks and tests, as jib's are read", jib),
  of("multi_swe_jest", "jest --verbose, files in front", jest(inBrackets)),
  of("multi_swe_jest_files", "jest, a line a file", jestFiles),
  of("multi_swe_darkreader", "jest as Dark Reader's is read", jest(beforeBracket, beforeBlank)),
  of("multi_swe_vitest", "vitest", vitest),
  of("multi_swe_insomnia", "vitest and jest, a line a file", insomnia),
  of("multi_swe_mocha", "mocha --reporter spec", mochaSpec),
  of("multi_swe_express", "mocha's JSON without files", expressJson),
  of("multi_swe_material_ui", "mocha's JSON with files", materialUi),
];
