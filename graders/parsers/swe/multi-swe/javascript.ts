/** Reads logs of jest, vitest and mocha as the instances of Multi-SWE-bench do. */
import { z } from "zod";
import { readJson } from "../../../../base/schema/read-json.ts";
import { type Statuses, splitLines, UnreadableLog } from "../status-log.ts";
import { Said } from "./said.ts";

type StatusReader = (log: string) => Statuses;

/** Durations stand at the end of a line. Only so many characters are searched, so that takes a short time. */
const longestEnd = 64;

/** Removes what `end` finds in the last part of a name. Always keeps one character. */
function without(end: RegExp): (name: string) => string {
  return (name) => {
    const from = Math.max(1, name.length - longestEnd);
    const at = name.slice(from).search(end);
    return at === -1 ? name : name.slice(0, from + at);
  };
}

export const inBrackets = without(/\s\((?:\d*\.)?\d(?:\d*\s+)?[\p{L}\p{N}_]+\)$/u);
const mochaTime = without(/\s\((?:\d*\.)?(?:\d*\s+)?[\p{L}\p{N}_]+\)$/u);
const vitestTime = without(/\s*(?:\d*\.)?\d+\s*(?:ms|s|m)$/);
const insomniaTime = without(/(?:\s\(\d+\s+tests\))?(?:\s*\(?(?:\d*\.)?\d(?:\d*\s+)?[\p{L}\p{N}_]+\)?)?$/u);

/** Darkreader's names of tests. If the line ends in a bracket, cuts at the first bracket after a space. */
export function beforeBracket(name: string): string {
  const at = name.endsWith(")") ? name.search(/\s\(/) : -1;
  return at === -1 || at + 2 > name.length - 2 ? name : name.slice(0, at).trimEnd();
}

/** Darkreader's name of a suite. It has no space, and a part in brackets may follow it. null: the text is no such name. */
export function beforeBlank(name: string): string | null {
  const blank = name.search(/\s/);
  if (blank === -1) return name;
  if (!name.endsWith(")")) return null;
  if (name.slice(blank).trimStart().startsWith("(")) return name.slice(0, blank);
  const bracket = name.lastIndexOf("(", blank);
  return bracket > 0 ? name.slice(0, bracket) : null;
}

/** A suite's file has a line of its own, and counts as a test. It also comes before the names of its tests. */
export function jest(nameOf: (name: string) => string, fileOf: (name: string) => string | null = nameOf): StatusReader {
  return (log) => {
    const said = new Said();
    let file: string | null = null;
    for (const line of splitLines(log).map((raw) => raw.trim())) {
      const [, ended, suite = ""] = /^(PASS|FAIL) (.+)$/s.exec(line) ?? [];
      const name = fileOf(suite);
      if (ended !== undefined && name !== null) {
        file = name;
        said.add(ended === "PASS" ? "PASSED" : "FAILED", name);
      }
      const [, tick, test = ""] = /^([✓✕]) (.+)$/su.exec(line) ?? [];
      if (tick === undefined) continue;
      if (file === null) throw new UnreadableLog(`the log has a test before its first suite: ${JSON.stringify(line.slice(0, 200))}`);
      said.add(tick === "✓" ? "PASSED" : "FAILED", `${file}:${nameOf(test)}`);
    }
    return said.statuses();
  };
}

/** Only files count as tests. */
export function jestFiles(log: string): Statuses {
  const said = new Said();
  for (const line of splitLines(log).map((raw) => raw.trim())) {
    const [, ended, name = ""] = /^(PASS|FAIL) (.+)$/s.exec(line) ?? [];
    if (ended !== undefined) said.add(ended === "PASS" ? "PASSED" : "FAILED", inBrackets(name));
  }
  return said.statuses();
}

function marked(passed: RegExp, failed: RegExp, nameOf: (name: string) => string): StatusReader {
  return (log) => {
    const said = new Said();
    for (const line of splitLines(log).map((raw) => raw.trim())) {
      const [pass, fail] = [passed.exec(line)?.[1], failed.exec(line)?.[1]];
      if (pass !== undefined) said.add("PASSED", nameOf(pass));
      if (fail !== undefined) said.add("FAILED", nameOf(fail));
    }
    return said.statuses();
  };
}

export const vitest = marked(/^✓ (.+)$/su, /^× (.+)$/su, vitestTime);
export const mochaSpec = marked(/^✔ (.+)$/su, /^\d+\) (.+)$/s, mochaTime);

/** Insomnia runs vitest and jest. A file counts as a test. vitest's line may also say how many tests the file has. */
export function insomnia(log: string): Statuses {
  const said = new Said();
  for (const line of splitLines(log).map((raw) => raw.trim())) {
    const [, word, name = ""] = /^(✓|PASS|FAIL) (.+)$/su.exec(line) ?? [];
    if (word === "✓") said.add("PASSED", insomniaTime(name));
    else if (word !== undefined) said.add(word === "PASS" ? "PASSED" : "FAILED", inBrackets(name));
  }
  return said.statuses();
}

const MochaTest = z.looseObject({ fullTitle: z.string(), file: z.string().optional() });
const MochaTests = z.array(MochaTest);
const MochaReport = z.looseObject({
  stats: z.looseObject({}),
  tests: MochaTests,
  passes: MochaTests,
  failures: MochaTests,
  pending: MochaTests,
});

function mochaJson(log: string, nameOf: (test: z.infer<typeof MochaTest>) => string): Statuses {
  const said = new Said();
  for (const value of objectsIn(log.replaceAll("\r\n", "").replaceAll("\n", ""))) {
    const report = MochaReport.safeParse(value);
    if (!report.success) throw new UnreadableLog("the log holds JSON that is no report of mocha's");
    for (const test of report.data.passes) said.add("PASSED", nameOf(test));
    for (const test of report.data.pending) said.add("SKIPPED", nameOf(test));
    for (const test of report.data.failures) said.add("FAILED", nameOf(test));
  }
  const { PASSED, FAILED, SKIPPED } = said.sets;
  for (const name of FAILED) for (const others of [PASSED, SKIPPED]) others.delete(name);
  for (const name of SKIPPED) PASSED.delete(name);
  return said.statuses();
}

export function materialUi(log: string): Statuses {
  const from = Math.max(0, log.indexOf("Building new"));
  return mochaJson(log.slice(from).replaceAll(/error Command failed with exit code \d+\./g, ""), ({ file, fullTitle }) => {
    if (file === undefined) throw new UnreadableLog("the log holds a test of mocha's that names no file");
    return `${file}:${fullTitle}`;
  });
}

export function expressJson(log: string): Statuses {
  return mochaJson(log.replaceAll(/^(?:=+|Writing .*)$/gm, ""), ({ fullTitle }) => fullTitle);
}

/** How many times the text's length may be read for braces that begin no JSON. A hostile log may hold a brace at each place. */
const mostReadings = 32;

/** Yields all JSON objects in a text. */
function* objectsIn(text: string): Generator<unknown> {
  const begins = /\{\s{0,64}["}]/g;
  let read = 0;
  for (let found = begins.exec(text); found; found = begins.exec(text)) {
    const end = endOfObject(text, found.index);
    const value = end === null ? undefined : jsonOf(text.slice(found.index, end));
    if (value === undefined) read += (end ?? text.length) - found.index;
    else yield value;
    if (read > mostReadings * text.length) throw new UnreadableLog("the log has too many beginnings of JSON");
    begins.lastIndex = value === undefined ? found.index + 1 : (end as number);
  }
}

/** Returns the place after the brace that closes the one at `at`; null: none does. */
function endOfObject(text: string, at: number): number | null {
  let depth = 0;
  const token = /["{}]/g;
  token.lastIndex = at;
  for (let found = token.exec(text); found; found = token.exec(text)) {
    if (found[0] === '"') {
      const closed = endOfString(text, token.lastIndex);
      if (closed === null) return null;
      token.lastIndex = closed;
    } else depth += found[0] === "{" ? 1 : -1;
    if (depth === 0) return token.lastIndex;
  }
  return null;
}

function endOfString(text: string, from: number): number | null {
  const special = /["\\]/g;
  special.lastIndex = from;
  for (let found = special.exec(text); found; found = special.exec(text)) {
    if (found[0] === '"') return special.lastIndex;
    special.lastIndex++;
  }
  return null;
}

function jsonOf(text: string): unknown {
  try {
    return readJson(text);
  } catch {
    return undefined;
  }
}
