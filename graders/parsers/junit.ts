/** JUnit XML, written by the command to the file `{report}`. */

import { tagsOf } from "../bounded/xml-tags.ts";
import { addOutcome, type Report, type ReportParser, type TestOutcome } from "./report-parser.ts";
import { pythonModules } from "./steering/python-modules.ts";
import { jsSteering, pythonSteering } from "./steering/steering-files.ts";

export const junit: ReportParser = {
  name: "junit",
  title: "JUnit XML in the file {report} (pytest, vitest, maven and others)",
  runner: null,
  source: "file",
  sealed: false,
  steeredBy: [...pythonSteering, ...jsSteering],
  modules: pythonModules,
  parse: parseJunit,
};

/** Deeper than any writer nests suites. */
const deepest = 100;

type Case = { name: string; outcome: TestOutcome };

function parseJunit(text: string): Report {
  const outcomes = new Map<string, TestOutcome>();
  const broken = (problem: string): Report => ({ outcomes, complete: false, begun: null, problem });
  const open: string[] = [];
  let current: Case | null = null;
  let roots = 0;
  for (const tag of tagsOf(text)) {
    if (tag === null) return broken("the report is not well-formed XML");
    if (tag.closing) {
      if (open.pop() !== tag.name) return broken(`</${tag.name}> closes nothing`);
      if (tag.name === "testcase" && current) {
        addOutcome(outcomes, current.name, current.outcome);
        current = null;
      }
      continue;
    }
    if (open.length === 0 && ++roots > 1) return broken("the report has two roots");
    if (open.length === 0 && !/^testsuites?$/.test(tag.name)) return broken(`the report begins with <${tag.name}>, not with <testsuites>`);
    if (open.length >= deepest) return broken(`the report is nested deeper than ${deepest}`);
    if (tag.name === "testcase") current = { name: caseName(tag.attributes), outcome: "passed" };
    else if (current && /^(?:failure|error)$/.test(tag.name)) current.outcome = "failed";
    else if (current && tag.name === "skipped" && current.outcome === "passed")
      current.outcome = isExpectedFailure(tag.attributes) ? "passed" : "skipped";
    if (!tag.empty) open.push(tag.name);
    else if (tag.name === "testcase" && current) {
      addOutcome(outcomes, current.name, current.outcome);
      current = null;
    }
  }
  if (roots === 0) return broken("there is no report");
  if (open.length > 0) return broken("the report ends early");
  return { outcomes, complete: true, begun: null, problem: null };
}

/** pytest writes an xfail as skipped with this type. */
function isExpectedFailure(attributes: Map<string, string>): boolean {
  return attributes.get("type") === "pytest.xfail";
}

function caseName(attributes: Map<string, string>): string {
  const name = attributes.get("name") ?? "";
  const suite = attributes.get("classname");
  return suite ? `${suite}::${name}` : name;
}
