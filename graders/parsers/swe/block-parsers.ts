/** Reads logs that say something of a test on several lines, as the SWE sets read them. */
import { z } from "zod";
import { readJson } from "../../../base/schema/read-json.ts";
import type { ReportParser } from "../report-parser.ts";
import { pythonSteering } from "../steering/steering-files.ts";
import { isWellFormed } from "./rebench-v2/xml.ts";
import { linesOf, passedOnly, type SetRules, type Statuses, sweParser, UnreadableLog } from "./status-log.ts";

/** Reads lines `test_name ok`, and headings `____ file.py:test_name ____` of tests that failed. */
function sympy(log: string): Statuses {
  const found: Statuses = new Map();
  const lines = linesOf(log);
  for (const name of lines.flatMap((line) => sympyHeading(line) ?? [])) found.set(name, "FAILED");
  for (const line of lines.map((raw) => raw.trim()).filter((text) => text.startsWith("test_"))) {
    const status = line.endsWith(" E") ? "ERROR" : line.endsWith(" F") ? "FAILED" : line.endsWith(" ok") ? "PASSED" : null;
    if (status !== null) found.set(line.split(/\s+/)[0] as string, status);
  }
  return found;
}

/** Returns the text between the first and the last space, if it holds `.py:`. null: the line is no heading. */
export function sympyHeading(line: string): string | null {
  const [first, last] = [line.indexOf(" "), line.lastIndexOf(" ")];
  const border = line.lastIndexOf(".py:", last - 4);
  return first === -1 || last < 5 || border < first + 1 ? null : `${line.slice(first + 1, border)}.py:${line.slice(border + 4, last)}`;
}

/**
 * Maven names no test that passed. So each test is run by a command of its own, which the shell prints: `-Dtest=NAME`. A result
 * belongs to the first name without one. Results that came before any name go to the names that are left at the end.
 */
function maven(log: string): Statuses {
  const found: Statuses = new Map();
  const waiting: string[] = [];
  const early: string[] = [];
  for (const line of linesOf(log).map((raw) => raw.trim())) {
    const name = /^.*-Dtest=(\S+)/s.exec(line)?.[1];
    const result = /BUILD (SUCCESS|FAILURE)$/s.exec(line)?.[1];
    if (name !== undefined) waiting.push(name);
    if (result === undefined) continue;
    const next = waiting.shift();
    if (next === undefined) early.push(result);
    else found.set(next, buildStatus(result));
  }
  for (const result of early.slice(0, waiting.length)) found.set(waiting.shift() as string, buildStatus(result));
  return found;
}

function buildStatus(result: string): string {
  return result === "SUCCESS" ? "PASSED" : "FAILED";
}

/** Reads `class > test PASSED`. The status may also follow in a later line. */
function gradle(log: string): Statuses {
  const found: Statuses = new Map();
  let waiting: string | null = null;
  for (const line of linesOf(log).map((raw) => raw.trim())) {
    const [, name, status] = /^([^>].+)\s+(PASSED|FAILED)$/.exec(line) ?? [];
    if (name !== undefined && status !== undefined) {
      found.set(name, status);
      waiting = null;
    } else if (/^[^>]\S*\s+>\s+\S+$/.test(line)) waiting = line;
    else if (waiting !== null && /^(?:PASSED|FAILED)$/.test(line)) {
      found.set(waiting, line);
      waiting = null;
    }
  }
  return found;
}

const phpWords = new Map([
  ["✔", "PASSED"],
  ["✘", "FAILED"],
  ["↩", "SKIPPED"],
]);

/** Reads the output of `--testdox`: a line with the class, then a line for each test. */
export function phpunit(log: string): Statuses {
  const found: Statuses = new Map();
  let suite = "None";
  for (const line of linesOf(log)) {
    const heading = /^(?=.*\)$)([\p{L}\p{N}_].+) \(.+\)$/su.exec(line)?.[1];
    const [, word, name] = /^\s*([✔✘↩])\s*(.*)$/su.exec(line) ?? [];
    if (heading !== undefined) suite = heading;
    else if (word !== undefined) found.set(`${suite} > ${name}`, phpWords.get(word) as string);
  }
  return found;
}

/** Indented lines are suites. The results end at the summary. */
export function karma(log: string): Statuses {
  const found: Statuses = new Map();
  const suites: string[] = [];
  let indent = -1;
  let started = false;
  for (const line of linesOf(log)) {
    if (line.startsWith("SUMMARY:")) break;
    if (line.includes("Starting browser")) started = true;
    else if (started) {
      const [, blanks = "", word, name = ""] = /^(\s*)([✔✖])?\s(.*)$/s.exec(line) ?? [];
      if (word !== undefined) found.set([...suites, name].join(" > "), word === "✔" ? "PASSED" : "FAILED");
      else if (blanks !== "" && blanks.length > indent) suites.push(name);
      else if (blanks !== "" && blanks.length < indent) suites.pop();
      if (word === undefined && blanks !== "") indent = blanks.length;
    }
  }
  return found;
}

/** Reads doctest's XML (`-s -r=xml`). A subcase passed if all its assertions did. Subcases nest. The sets give broken XML up. */
export function doctest(log: string): Statuses {
  const found: Statuses = new Map();
  const open: string[] = [];
  let test = "";
  const xml = doctestXml(log);
  if (xml !== "" && !isWellFormed(xml)) throw new UnreadableLog("the log's XML is not well-formed");
  for (const [, close, tag, attributes = "", empty] of xml.matchAll(/<(\/?)(TestCase|SubCase|Expression)\b([^<>]{0,4096}?)(\/?)>/g)) {
    const name = plain(/\bname="([^"]*)"/.exec(attributes)?.[1]);
    if (tag === "TestCase") test = name;
    else if (tag === "Expression" && !close && !/\bsuccess="true"/.test(attributes))
      for (const subcase of open) found.set(subcase, "FAILED");
    else if (tag === "SubCase" && close) open.pop();
    else if (tag === "SubCase") {
      found.set(`${test} > ${name}`, "PASSED");
      if (!empty) open.push(`${test} > ${name}`);
      if (open.length > deepestSubcase) throw new UnreadableLog(`the log nests subcases deeper than ${deepestSubcase}`);
    }
  }
  return found;
}

/** An assertion says something of all subcases around it: deeper ones would take a time that grows with the square of the log. */
const deepestSubcase = 100;

/** The first element of a log that is closed. */
function doctestXml(log: string): string {
  const from = log.indexOf("<doctest");
  const end = from === -1 ? -1 : log.indexOf(doctestEnd, from + "<doctest".length);
  return end === -1 ? "" : log.slice(from, end + doctestEnd.length);
}

const doctestEnd = "</doctest>";

const ProOutput = z.object({ tests: z.array(z.object({ name: z.string(), status: z.string() })) });

/** Reads what the instance's own parser.py of SWE-bench Pro wrote. If a name stands there twice, one `PASSED` is enough. */
function proOutput(log: string): Statuses {
  const [from, to] = [log.indexOf("{"), log.lastIndexOf("}")];
  try {
    const { tests } = ProOutput.parse(readJson(log.slice(from, to + 1)));
    const found: Statuses = new Map();
    for (const { name, status } of tests) if (found.get(name) !== "PASSED") found.set(name, status);
    return found;
  } catch {
    return new Map();
  }
}

const entities = new Map([
  ["&lt;", "<"],
  ["&gt;", ">"],
  ["&quot;", '"'],
  ["&apos;", "'"],
  ["&amp;", "&"],
]);

function plain(text = ""): string {
  return text.replace(/&(?:lt|gt|quot|apos|amp);/g, (entity) => entities.get(entity) as string);
}

const of = (
  name: string,
  title: string,
  read: (log: string) => Statuses,
  more: { steeredBy?: readonly string[]; rules?: SetRules } = {},
): ReportParser => sweParser({ name, title: `SWE sets: ${title}`, read, ...more });

export const blockParsers: readonly ReportParser[] = [
  of("parse_log_sympy", "bin/test of SymPy", sympy, { steeredBy: pythonSteering }),
  of("parse_log_maven", "Maven, a command a test", maven),
  of("parse_log_gradle_custom", "gradle test, each test shown", gradle),
  of("parse_log_phpunit", "phpunit --testdox", phpunit),
  of("parse_log_karma", "Karma's mocha reporter", karma),
  of("swe_bench_pro", "the output of SWE-bench Pro's parser.py", proOutput, { rules: passedOnly() }),
  of("parse_log_doctest", "doctest -s -r=xml", doctest),
];
