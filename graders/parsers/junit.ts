/**
 * JUnit XML, written by the command to the file `{report}`. A small subset of XML is read: elements, attributes,
 * comments, CDATA and the predefined entities. A document type is refused, for it could define others.
 *
 * `saxes` reads all of XML, but it is two packages for fifty lines here, and bounds nothing: 3 MB of open elements take it a
 * second and 250 MB. It also refuses control characters, which test runners print into a report's output.
 */

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

export type Tag = { name: string; closing: boolean; empty: boolean; attributes: Map<string, string> };

/**
 * The tags in order; null where the text is no XML of the subset. Linear in the text, and attributes are bounded: of
 * millions the stack would overflow.
 */
export function* tagsOf(text: string): Generator<Tag | null> {
  const token =
    /<!--[\s\S]*?-->|<!\[CDATA\[[\s\S]*?\]\]>|<\?[\s\S]*?\?>|<(\/?)([A-Za-z_][\w.:-]*)((?:\s+[\w.:-]+\s*=\s*(?:"[^"<]*"|'[^'<]*')){0,1000})\s*(\/?)>/y;
  let at = text.indexOf("<");
  while (at !== -1) {
    token.lastIndex = at;
    const found = token.exec(text);
    if (!found) return yield null;
    if (found[2] !== undefined) {
      yield { name: found[2], closing: found[1] === "/", empty: found[4] === "/", attributes: readAttributes(found[3] ?? "") };
    }
    at = text.indexOf("<", token.lastIndex);
  }
}

function readAttributes(text: string): Map<string, string> {
  const attributes = new Map<string, string>();
  for (const found of text.matchAll(/([\w.:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g)) {
    attributes.set(found[1] as string, decodeEntities(found[2] ?? found[3] ?? ""));
  }
  return attributes;
}

const entities = new Map([
  ["lt", "<"],
  ["gt", ">"],
  ["amp", "&"],
  ["quot", '"'],
  ["apos", "'"],
]);

function decodeEntities(text: string): string {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(\w{1,8}));/g, (whole, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return entities.get(name) ?? whole;
    const point = decimal !== undefined ? Number(decimal) : Number.parseInt(hex as string, 16);
    return point <= 0x10ffff ? String.fromCodePoint(point) : whole;
  });
}
