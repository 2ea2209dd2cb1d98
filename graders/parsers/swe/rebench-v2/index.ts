/**
 * Lists the parsers of SWE-rebench-V2 (commit c71902a8, lib/agent/log_parsers.py). Many have the name of one of swebench's parsers,
 * and read in another way. So here each has its own name after `rebench_v2.`. Every required test must have passed. Durations are
 * removed from names, in the log and in the lists.
 */
import type { ReportParser } from "../../report-parser.ts";
import { pythonSteering } from "../../steering/steering-files.ts";
import { doctest, karma, phpunit } from "../block-parsers.ts";
import { readDjango } from "../django.ts";
import { readAs } from "../line-parsers.ts";
import { withoutFolder } from "../pytest.ts";
import { passedOnly, type Statuses, sweParser } from "../status-log.ts";
import * as js from "./js.ts";
import * as jvm from "./jvm.ts";
import { readLines } from "./lines.ts";
import * as more from "./more.ts";
import * as python from "./python.ts";
import { tables } from "./tables.ts";
import * as tree from "./tree.ts";
import * as xml from "./xml.ts";

/** Durations that some runners write into a test's name. They differ in each run. */
const durations = [
  /(?<!\s)\s*\[\s*\d+(?:\.\d+)?\s*(?:ms|s)\s*\]\s*$/i,
  /(?<!\s)\s+in\s+\d+(?:\.\d+)?\s+(?:msec|sec)(?![\p{L}\p{N}_])/giu,
  /(?<!\s)\s*\(\s*\d+(?:\.\d+)?\s*(?:ms|s)\s*\)\s*$/i,
];

function withoutDurations(name: string): string {
  return durations.reduce((text, duration) => text.replace(duration, ""), name).trim();
}

type NamedReader = readonly [names: readonly string[], title: string, read: (log: string) => Statuses, steeredBy?: readonly string[]];

const pytest: readonly NamedReader[] = [
  [
    ["", "_astroid", "_flask", "_marshmallow", "_pvlib", "_pyvista", "_sqlfluff", "_xarray", "_dvc"].map(
      (end) => `parse_log${end || "_pytest"}`,
    ),
    "pytest -rA, names up to a blank",
    (log) => python.pytest(log),
  ],
  [["parse_log_pydantic"], "pytest -rA, names up to a blank", (log) => python.pytest(log)],
  [
    ["_pytest_options", "_pydicom", "_requests", "_pylint"].map((end) => `parse_log${end}`),
    "the same, without folders in parameters",
    (log) => python.pytest(log, withoutFolder),
  ],
  [["_pytest_v2", "_astropy", "_scikit", "_sphinx"].map((end) => `parse_log${end}`), "pytest -rA or -v", (log) => python.pytestBoth(log)],
  [["parse_log_pytest_nebo"], "pytest with workers", python.pytestWorkers],
  [["parse_log_seaborn"], "pytest as seaborn runs it", python.seaborn],
  [["parse_log_matplotlib"], "pytest as matplotlib runs it", python.matplotlib],
  [["parse_log_cpp"], "pytest -v of bindings", python.pytestVerbose],
  [["parse_log_sympy"], "bin/test of SymPy", more.sympy],
  [["parse_log_django"], "Django's runtests.py", readDjango],
];

const shared = [
  ...["gotest", "redis", "jq", "micropython_test", "googletest", "minitest", "cucumber", "ruby_unit", "rspec_transformed_json", "cargo"],
  ...["ant", "jest", "jest_json", "vitest", "tap"],
];

const others: readonly NamedReader[] = [
  ...shared.map((name): NamedReader => [[`parse_log_${name}`], "read as swebench reads it", readAs(`parse_log_${name}`)]),
  ...tables.map(([names, title, reader]): NamedReader => [names, title, readLines(reader)]),
  [["parse_log_doctest"], "doctest -s -r=xml", doctest],
  [["parse_log_karma"], "Karma's mocha reporter", karma],
  [["parse_log_phpunit"], "phpunit --testdox", phpunit],
  [["parse_combined_test_reports"], "JUnit's XML", xml.reports],
  [["parse_log_sbt", "parse_log_junit"], "JUnit's test cases in a log", xml.fragments],
  [["parse_logs_r_junit", "parse_log_r_junit"], "testthat's JUnit", xml.testthat],
  [["parse_log_gradlew_v1"], "Gradle's JUnit", xml.gradleReports],
  [["parse_log_maven"], "Maven, a command a test", jvm.mavenCommands],
  [["parse_java_mvn", "parse_log_java_mvn"], "Maven", jvm.maven],
  [["parse_java_mvn_v2", "parse_log_java_mvn_v2"], "Maven's modules", jvm.mavenModules],
  [["parse_logs_kotlin_junit", "parse_log_kotlin_junit"], "old Surefire", jvm.classes],
  [["parse_log_lein"], "lein test", jvm.lein],
  [["parse_log_gradle_custom"], "gradle test, each test shown", more.gradleLines],
  [["parse_log_calypso"], "jest --verbose under its command", js.calypso],
  [["parse_log_chart_js"], "Karma's failures", js.chart],
  [["parse_log_marked"], "jasmine's failures", js.marked],
  [["parse_log_react_pdf"], "jest, a line a file", js.files],
  [["parse_log_js"], "mocha, with headings of failures", js.mochaHeads],
  [["parse_log_js_2"], "mocha", js.mocha],
  [["parse_log_js_3"], "TAP in blocks", js.tapBlocks],
  [["parse_log_js_4"], "symbols before names", js.symbolLines],
  [["parse_log_npx"], "mocha through npx", js.npx],
  [["parse_log_ruby_v1"], "Minitest's spec reporter", more.minitestSuites],
  [["parse_log_php_v1"], "Pest", more.phpTicks],
  [["parse_log_cpp_v3"], "names with dots, and Botan's groups", more.cppWords],
  [["parse_log_haskell"], "tasty, hspec and HUnit", tree.haskell],
  [["parse_log_haskell_v2"], "hspec's tree", tree.hspecTree],
  [["parse_log_julia"], "Julia's summary", tree.julia],
  [["parse_log_r"], "testthat", tree.testthatLog],
  [["parse_log_r_v2"], "R CMD check", tree.rCheck],
  [["parse_log_dart"], "dart test --reporter json", more.dartEvents],
  [["parse_log_dart_v2"], "dart test through melos", more.dartTwice],
  [["parse_log_scala_v3"], "ScalaTest with suites", more.scalaSuites],
  [["parse_log_ocaml_v2"], "dune's runs", more.dune],
  [["parse_log_ocaml_v3"], "boxes before names", more.boxes],
  [["parse_log_ocaml_v4", "parse_log_ocaml_v5"], "ocamlbuild", more.ocamlBuild],
];

const rules = passedOnly(withoutDurations);

/** A fork of swebench 4.1 reads the logs of SWE-rebench (the first set). For the names in its lists, its other parsers agree with swebench 5's. */
const first = sweParser({
  name: "swebench_4.parse_log_pytest_v2",
  title: "SWE-rebench: pytest -rA or -v",
  steeredBy: pythonSteering,
  read: (log) => python.pytestBoth(log, true),
});

const second = [...pytest.map(([names, title, read]): NamedReader => [names, title, read, pythonSteering]), ...others].flatMap(
  ([names, title, read, steeredBy]) =>
    names.map((name) =>
      sweParser({
        name: `rebench_v2.${name}`,
        title: `SWE-rebench-V2: ${title}`,
        rules,
        read: (log) => new Map(Array.from(read(log), ([test, status]) => [withoutDurations(test), status] as const)),
        ...(steeredBy && { steeredBy }),
      }),
    ),
);

export const rebenchParsers: readonly ReportParser[] = [first, ...second];
