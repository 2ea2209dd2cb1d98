/**
 * pytest's own log: the short summary of `-rA`, or the lines of `-v`. A name is a node id. XFAIL and XPASS are passed, as
 * pytest says. A folded `SKIPPED [2] file:line` names no test.
 */
import { logParser, normalName } from "./log-parser.ts";
import type { TestOutcome } from "./report-parser.ts";
import { pythonModules } from "./steering/python-modules.ts";
import { pythonSteering } from "./steering/steering-files.ts";
import type { TestList } from "./test-list.ts";

export const pytest = logParser({
  name: "pytest",
  title: "pytest's log, run with -rA or -v",
  steeredBy: pythonSteering,
  modules: pythonModules,
  read,
});

const outcomes = new Map<string, TestOutcome>([
  ["PASSED", "passed"],
  ["XFAIL", "passed"],
  ["XPASS", "passed"],
  ["FAILED", "failed"],
  ["ERROR", "failed"],
  ["SKIPPED", "skipped"],
]);
/** Words of the last line for the rows that count as passed. */
const counted = new Map([
  ["PASSED", "passed"],
  ["XFAIL", "xfailed"],
  ["XPASS", "xpassed"],
]);

type Row = { word: string; name: string };

function read(lines: string[], list: TestList): void {
  const ends = lines.flatMap((line, at) => (totals(line) ? [at] : []));
  const heads = lines.flatMap((line, at) => (/^=+ short test summary info =+$/.test(line) ? [at] : []));
  list.expectOne("last line with the totals", ends.length);
  if (heads.length > 1) list.expectOne("short test summary", heads.length);
  const end = ends.at(-1) ?? 0;
  const head = heads.at(-1) ?? end;
  const short = lines.slice(head + 1, Math.max(end, head)).flatMap(shortRow);
  const sections = lines.findIndex((line) => /^=+ (?:ERRORS|FAILURES|PASSES) =+$/.test(line));
  const verbose = lines.slice(0, sections === -1 ? head : Math.min(sections, head)).flatMap(verboseRow);
  const total = totals(lines[end] ?? "") ?? new Map<string, number>();
  const listed = short.some(({ word }) => word === "PASSED") ? short : verbose;
  if (passed(short).length === passed(verbose).length && passed(short).join("\n") !== passed(verbose).join("\n"))
    list.complain("the short summary lists other passed tests than the lines of -v");
  for (const [word, said] of counted) {
    const found = listed.filter((row) => row.word === word).length;
    if (word === "PASSED" || found > 0) list.expect(said, total.get(said) ?? 0, found, found === 0 ? "run pytest with -rA" : "");
  }
  for (const rows of [short, verbose])
    for (const { word, name } of rows)
      if (rows === listed || !counted.has(word)) list.add(normalName(name), outcomes.get(word) ?? "failed");
}

function passed(rows: Row[]): string[] {
  return rows.flatMap(({ word, name }) => (word === "PASSED" ? [name] : [])).sort();
}

/** `1 failed, 2 passed in 0.03s`, with or without the line of `=` around it. */
function totals(line: string): Map<string, number> | null {
  const text = line.replace(/^=+ /, "").replace(/ =+$/, "");
  const found = /^(no tests ran|\d+ [a-z ]+(?:, \d+ [a-z ]+)*) in [\d.]+ ?s(?:econds)?(?: \([\d:]+\))?$/.exec(text);
  if (!found) return null;
  return new Map(Array.from((found[1] as string).matchAll(/(\d+) ([a-z ]+)/g), ([, count, what]) => [what as string, Number(count)]));
}

function shortRow(line: string): Row[] {
  // A failed subtest: `SUBFAILED[its message] file::test - why`.
  const sub = /^SUBFAIL.*? (\S+::\S+)/.exec(line);
  if (sub) return [{ word: "FAILED", name: sub[1] as string }];
  const found = /^(PASSED|FAILED|ERROR|XFAIL|XPASS|SKIPPED) (.+)$/.exec(line);
  const [, word = "", rest = ""] = found ?? [];
  if (!found || (word === "SKIPPED" && /^\[\d+\] /.test(rest))) return [];
  return [{ word, name: word === "PASSED" ? rest : withoutReason(rest) }];
}

/** The node id before ` - reason`. A parameter in brackets may hold a dash of its own. */
function withoutReason(text: string): string {
  const dash = text.indexOf(" - ");
  const bracket = text.indexOf("[");
  if (dash === -1) return text;
  if (bracket === -1 || bracket > dash) return text.slice(0, dash);
  const close = text.indexOf("] - ", bracket);
  return close === -1 ? text : text.slice(0, close + 1);
}

/** `file::test PASSED [ 10%]`, `file::test SKIPPED (why) [ 10%]`, and pytest-xdist's `[gw0] [ 10%] PASSED file::test`. */
function verboseRow(line: string): Row[] {
  const apart = /^\[gw\d+\] \[ {0,2}\d{1,3}%\] ([A-Z]+) (\S.*)$/.exec(line);
  if (apart) return rowOf(apart[1] as string, (apart[2] as string).trimEnd());
  const text = line.replace(/\[ {0,2}\d{1,3}%\]$/, "").trimEnd();
  const reason = text.endsWith(")") ? text.search(/ (?:SKIPPED|XFAIL|XPASS) \(/) : -1;
  const row = reason === -1 ? text : text.slice(0, text.indexOf("(", reason) - 1);
  const at = row.lastIndexOf(" ");
  return rowOf(row.slice(at + 1), row.slice(0, Math.max(at, 0)));
}

function rowOf(word: string, name: string): Row[] {
  return outcomes.has(word) && name.includes("::") ? [{ word, name }] : [];
}
