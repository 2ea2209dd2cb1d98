/** Reads logs of Haskell, Julia and R as SWE-rebench-V2 does. They indent, count or have sections. */
import { type Status, type Statuses, splitLines, UnreadableLog, wordsOf } from "../status-log.ts";

const keep = (found: Statuses, name: string, status: Status): unknown => (found.has(name) ? null : found.set(name, status));
// biome-ignore lint/suspicious/noControlCharactersInRegex: a colour begins with one
const withoutColours = (line: string): string => line.replace(/\x1b\[[0-9;]*m/g, "");

const tastyWords = new Map<string, Status>([
  ["OK", "PASSED"],
  ["PASS", "PASSED"],
  ["FAIL", "FAILED"],
  ["ERROR", "ERROR"],
  ["SKIP", "SKIPPED"],
  ["PENDING", "SKIPPED"],
]);
const haskellNoise = ["Test suite ", "Linking ", "Building ", "Running  "];

/** Reads lines of tasty, hspec and HUnit. */
export function haskell(log: string): Statuses {
  const found: Statuses = new Map();
  for (const line of splitLines(log).map((raw) => withoutColours(raw).trimEnd())) {
    if (line === "" || haskellNoise.some((word) => line.includes(word))) continue;
    const tasty = tastyLine(line);
    const [, ticked] = /^\s+(\S.*)\s\[[✓✔]\]$/su.exec(line) ?? [];
    const [, crossed] = /^\s+(\S.*)\s\[[✗✘]\]$/su.exec(line) ?? [];
    const [, passed] = /^\s*[✓✔]\s+(\S.*)$/su.exec(line) ?? [];
    const [, failed] = /^\s*(?:[✗✘]|\d+\))\s+(\S.*)$/su.exec(line) ?? [];
    const [, kind, unit] = /^###\s+(Failure|Error)\s+in:\s+(.+)$/s.exec(line) ?? [];
    if (tasty !== null) found.set(tasty.name, tasty.status);
    else if (ticked !== undefined) keep(found, ticked.trim(), "PASSED");
    else if (crossed !== undefined) found.set(crossed.trim(), "FAILED");
    else if (passed !== undefined) keep(found, withoutBrackets(passed), "PASSED");
    else if (failed !== undefined) found.set(failed.trim(), "FAILED");
    else if (unit !== undefined) found.set(unit.trim(), kind === "Error" ? "ERROR" : "FAILED");
  }
  return found;
}

/** Reads `name: OK`, at the first colon that a status follows. */
function tastyLine(line: string): { name: string; status: Status } | null {
  const text = line.trimStart();
  for (const { index, 0: colon, 1: word } of text.matchAll(/:\s*(OK|PASS|FAIL|ERROR|SKIP|PENDING)(?![\p{L}\p{N}_])/gu))
    if (index > 0 && colon !== "") return { name: text.slice(0, index).trim(), status: tastyWords.get(word as string) as Status };
  return null;
}

/** If the text ends in a bracket, cuts it at the first bracket after a space. */
function withoutBrackets(text: string): string {
  const at = text.endsWith(")") ? text.search(/\s\(/) : -1;
  return (at > 0 ? text.slice(0, at) : text).trim();
}

const failureEnds = ["To rerun use:", "Randomized with seed", "Finished in ", "Test suite "];
const treeNoise = [
  ...["Downloading", "Building", "Installing", "Completed", "Starting", "Preprocessing", "Configuring", "Linking"],
  ...["Resolving dependencies", "Build profile", "In order, the following will be built", "Error:", "Test suite ", "Running "],
];
const unchanged = "Golden and Actual output didn't change";
/** A name holds the names of all levels above it. Without this bound, names could grow with the square of the log's length. */
const deepestLevel = 200;

/** Reads hspec's tree. Two spaces make a level, and a line without a deeper one below it is a test. */
export function hspecTree(log: string): Statuses {
  const lines = splitLines(log);
  const failures = lines.findIndex((line) => line.trim() === "Failures:");
  const found: Statuses = new Map();
  const stack: string[] = [];
  const tree = lines.slice(treeStart(lines), failures === -1 ? lines.length : failures).filter((line) => {
    const text = line.trim();
    return text !== "" && text !== unchanged;
  });
  for (const [at, line] of tree.entries()) {
    const text = line.trim();
    const [, failed] = /^(.*?)(?<!\s)\s+FAILED\s*\[\d+\]$/s.exec(text) ?? [];
    const pending = failed === undefined ? text.search(/(?<!\s)\s+(?:PENDING|SKIPPED)(?![\p{L}\p{N}_])/iu) : -1;
    const level = Math.min(Math.floor(indentOf(line) / 2), deepestLevel);
    stack.length = Math.min(stack.length, level);
    while (stack.length < level) stack.push("");
    stack.push((failed ?? (pending === -1 ? text : text.slice(0, pending))).trim());
    const next = tree[at + 1];
    if (next !== undefined && indentOf(next) > indentOf(line)) continue;
    const name = stack.filter((part) => part !== "").join(".");
    found.set(name, failed !== undefined ? "FAILED" : pending === -1 ? "PASSED" : "SKIPPED");
  }
  for (const name of failures === -1 ? [] : failureNames(lines.slice(failures + 1))) found.set(name, "FAILED");
  return found;
}

function indentOf(line: string): number {
  return /^ */.exec(line)?.[0].length ?? 0;
}

function treeStart(lines: string[]): number {
  const suite = lines.findIndex((line) => line.startsWith("Test suite ") && line.includes(": RUNNING..."));
  if (suite !== -1) return suite + 1;
  const first = lines.findIndex((line) => /^[^ ]/.test(line) && line.includes(".") && !treeNoise.some((word) => line.includes(word)));
  return Math.max(first, 0);
}

function failureNames(lines: string[]): string[] {
  const names: string[] = [];
  for (const text of lines.map((line) => line.trim())) {
    if (failureEnds.some((end) => text.startsWith(end))) break;
    const header = /^\d+\)\s+(.*)$/s.exec(text)?.[1];
    if (header !== undefined)
      names.push(
        header
          .trim()
          .split(",")
          .map((part) => part.trim())
          .join("."),
      );
  }
  return names;
}

/** Reads the table `Test Summary`. How many numbers a row has says which columns they are. */
export function julia(log: string): Statuses {
  const found: Statuses = new Map();
  let begun = false;
  let fail = false;
  let error = false;
  for (const line of splitLines(log)) {
    if (line.includes("Test Summary:")) {
      begun = true;
      if (line.includes("| Pass")) {
        const head = line.split("|")[1] as string;
        fail = head.includes("Fail");
        error = head.includes("Error");
      }
      continue;
    }
    const bar = begun ? /\s\|/.exec(line.trimStart()) : null;
    if (bar === null) continue;
    const text = line.trimStart();
    const columns = text.slice(bar.index + 2);
    const numbers = wordsOf(columns)
      .filter((word) => /^\d{1,15}$/.test(word))
      .map(Number);
    const name = text.slice(0, bar.index).trim();
    if (numbers.length >= 2 && name !== "") found.set(name, juliaStatus(numbers, columns, { fail, error }));
  }
  return found;
}

/** An empty first column has at least this many spaces. */
const emptyColumn = 10;

function juliaStatus(numbers: number[], columns: string, has: { fail: boolean; error: boolean }): Status {
  const [first = 0, second = 0, third = 0] = numbers;
  if (numbers.length === 2) {
    const blanks = columns.length - columns.trimStart().length;
    return blanks >= emptyColumn || first !== numbers.at(-1) ? "ERROR" : "PASSED";
  }
  if (numbers.length === 3) return second === 0 ? "PASSED" : has.fail && !has.error ? "FAILED" : "ERROR";
  return third > 0 ? "ERROR" : second > 0 ? "FAILED" : "PASSED";
}

const rTime = /(?<!\s)\s*\[\s*\d+(?:\.\d+)?\s*[a-zA-Z]+\]$/;
const rName = (name: string): string => name.trim().replace(rTime, "").trim();

/** Reads testthat's contexts, then the tests in its section of failures. */
export function testthatLog(log: string): Statuses {
  const found: Statuses = new Map();
  const lines = splitLines(log).map((line) => line.trim());
  for (const line of lines) {
    const [, mark, name = ""] = /^([✔✖])\s+\|[^|]+\|\s+(.+)$/su.exec(line) ?? [];
    if (mark !== undefined) found.set(rName(name), mark === "✔" ? "PASSED" : "FAILED");
  }
  const start = lines.findIndex((line) => line.startsWith("── Failed tests ──") || line.startsWith("== Failed tests =="));
  for (const line of start === -1 ? [] : lines.slice(start + 1)) {
    if (line.startsWith("[ FAIL") || line.startsWith("══ Results ══")) break;
    const [, word, name = ""] = /^(Failure|Error)\s+\([^)]+\):\s+(.+)$/s.exec(line) ?? [];
    if (word !== undefined) found.set(rName(name), word === "Failure" ? "FAILED" : "ERROR");
  }
  return found;
}

const checkWords = new Map<string, Status>([
  ...["OK", "NOTE", "NOTES"].map((word) => [word, "PASSED"] as const),
  ...["WARNING", "WARNINGS", "FAIL", "FAILED"].map((word) => [word, "FAILED"] as const),
  ...["ERROR", "ERRORS"].map((word) => [word, "ERROR"] as const),
  ["SKIPPED", "SKIPPED"],
]);

/** Reads the output of `R CMD check`. The status may follow its check on a later line. */
export function rCheck(log: string): Statuses {
  const found: Statuses = new Map();
  let waiting: string | null = null;
  for (const line of splitLines(log).map((raw) => raw.trim())) {
    if (line === "") continue;
    if (waiting !== null) {
      const [first] = wordsOf(line.replace(/^[.:!]+/, "").replace(/(?<![.:!])[.:!]+$/, ""));
      if (first === undefined) throw new UnreadableLog("the log has a line of dots alone where a check waits for its status");
      const status = checkWords.get(first.toUpperCase());
      if (status !== undefined) {
        found.set(waiting, status);
        waiting = null;
      }
      continue;
    }
    const text = line.startsWith("* checking ") ? line.slice("* checking ".length) : "";
    const dots = text.lastIndexOf(" ...");
    const word = dots > 0 ? text.slice(dots + 4) : null;
    if (word === "") waiting = text.slice(0, dots);
    else if (word !== null && /^ [A-Z]+$/.test(word)) found.set(text.slice(0, dots), checkWords.get(word.slice(1)) ?? "PASSED");
  }
  if (waiting !== null && !found.has(waiting)) found.set(waiting, "PASSED");
  return found;
}
