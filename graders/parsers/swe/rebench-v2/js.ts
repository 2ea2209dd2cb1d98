/** Reads logs of mocha, jest, TAP and Karma as SWE-rebench-V2 does. */
import { linesOf, type Status, type Statuses, splitLines, UnreadableLog } from "../status-log.ts";
import { type LineReader, readLines } from "./lines.ts";

/** A duration is shorter than this. */
const longestEnd = 96;

/** Removes what `end` finds in the last part of the text. */
function withoutEnd(text: string, end: RegExp): string {
  const from = Math.max(0, text.length - longestEnd);
  const at = text.slice(from).search(end);
  return at === -1 ? text : text.slice(0, from + at);
}

const duration = /\s*(?:\(\s*)?\d+(?:\.\d+)?\s*(?:ms|s)\s*\)?\s*$/i;
const plain = (name: string): string => withoutEnd(name, duration).trim();

const dash: LineReader["rules"][number] = { line: /^-\s+(.*)$/s, status: "SKIPPED", nameOf: plain };
const tick: LineReader["rules"][number] = { line: /^✔\s+(.*)$/su, status: "PASSED", keeps: true, nameOf: plain };

export const mochaHeads = readLines({
  rules: [
    dash,
    { line: /^\d+\)\s+(.*):$/s, status: "FAILED", nameOf: plain },
    { line: /^\[W\]\s*\d+\)\s+(.*)$/s, status: "FAILED", nameOf: plain },
    tick,
  ],
});

export const mocha = readLines({ rules: [dash, { line: /^\d+\)\s+(.*)$/s, status: "FAILED", nameOf: plain }, tick] });

const bracketed = /(?<!\s)\s+\([^)]{1,4096}\)$/;
const npxTime = /(?<!\s)\s+\(\d+(?:ms)?\)$/;

/** A later line always replaces an earlier status. */
export function npx(log: string): Statuses {
  const found: Statuses = new Map();
  for (const line of splitLines(log).map((raw) => raw.trimEnd())) {
    const passed = /^\s*✔\s+(.+)$/su.exec(line)?.[1];
    const failed = passed === undefined ? /^\s*\d+\)\s+(.+)$/s.exec(line)?.[1] : undefined;
    if (passed !== undefined) found.set(withoutEnd(passed, npxTime).trim(), "PASSED");
    else if (failed !== undefined) found.set(failed.trim().replace(bracketed, ""), "FAILED");
  }
  return found;
}

/** Reads TAP with nested blocks: `ok 1 - name {`. */
export function tapBlocks(log: string): Statuses {
  const found: Statuses = new Map();
  const stack: string[] = [];
  for (const raw of splitLines(log).map((line) => line.trim())) {
    if (/^\}+$/.test(raw)) {
      stack.splice(Math.max(0, stack.length - raw.length));
      continue;
    }
    const opens = raw.endsWith("{");
    const [, word, rest = ""] = /^(not ok|ok)\s+\d+\s+-\s+(.*)$/s.exec(opens ? raw.slice(0, -1).trimEnd() : raw) ?? [];
    const hash = rest.search(/\s#/);
    const title = hash === -1 ? rest : rest.slice(0, hash);
    const name = plain(title.trim());
    if (word === undefined || name === "") continue;
    const full = [...stack, name].join(" :: ");
    // The title was cut at the first `#` after a space, so it holds only a mark without a space before it.
    if (/# (?:skip|todo)/i.test(title)) found.set(full, "SKIPPED");
    else if (word === "not ok" || !found.has(full)) found.set(full, word === "ok" ? "PASSED" : "FAILED");
    if (opens && stack.length < deepestBlock) stack.push(name);
  }
  return found;
}

/** A name holds the names of all blocks around it. Without this bound, names could grow with the square of the log's length. */
const deepestBlock = 100;

const symbols = new Map<string, Status>([
  ...["✔", "✓"].map((one) => [one, "PASSED"] as const),
  ...["✘", "✖", "×"].map((one) => [one, "FAILED"] as const),
  ...["○", "◌", "◦", "⚪"].map((one) => [one, "SKIPPED"] as const),
]);
const skipWords = ["(skipped)", "[skip]", "[skipped]", "[pending]", "[todo]"];

/** Reads lines with a symbol, then perhaps a tag in brackets, then the name. */
export function symbolLines(log: string): Statuses {
  const found: Statuses = new Map();
  for (const line of splitLines(log).map((raw) => raw.trim())) {
    if (line === "") continue;
    const [first = ""] = line;
    const status = symbols.get(first);
    const name = plain(status === undefined ? withoutSkipWords(line) : withoutTag(line.slice(first.length).trim()));
    if (name === "") continue;
    if (status !== undefined) {
      if (status !== "PASSED" || !found.has(name)) found.set(name, status);
    } else if (skipWords.some((word) => line.toLowerCase().includes(word))) found.set(name, "SKIPPED");
  }
  return found;
}

function withoutSkipWords(line: string): string {
  return skipWords.reduce((text, word) => text.replaceAll(word, ""), line);
}

function withoutTag(text: string): string {
  const at = text.startsWith("[") ? text.indexOf("]:") : -1;
  const rest = at === -1 ? text : text.slice(at + 2).trim();
  return rest.startsWith(":") ? rest.slice(1).trim() : rest;
}

/** Reads Chrome's lines of failed tests. */
export function chart(log: string): Statuses {
  const found: Statuses = new Map();
  for (const raw of linesOf(log)) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escapes begin with one
    const line = raw.replace(/\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])/g, "");
    if (!line.endsWith("FAILED")) continue;
    const name = /Chrome\s[\d.]+[^\S\r\n]\(.+?\)[^\S\r\n](.*)FAILED$/s.exec(line)?.[1];
    if (name !== undefined) found.set(name, "FAILED");
  }
  return found;
}

/** Reads jasmine's list of failures. */
export function marked(log: string): Statuses {
  const names = linesOf(log).flatMap((line) => /^\d+\)\s(.*)/s.exec(line)?.[1] ?? []);
  return new Map(names.map((name) => [name.trim(), "FAILED"]));
}

/** Reads lines that name a file with its time. */
export function files(log: string): Statuses {
  const found: Statuses = new Map();
  const time = /\s\([\d.]+\s*(?:ms|s)\)$/;
  for (const line of linesOf(log)) {
    const [, word, rest = ""] = /^(PASS|FAIL)\s(.*)$/s.exec(line) ?? [];
    if (word !== undefined) found.set(withoutEnd(rest, time).trimEnd(), word === "PASS" ? "PASSED" : "FAILED");
  }
  return found;
}

/** Reads jest --verbose after the command that ran it. A test's name begins with the less indented lines above it. */
export function calypso(log: string): Statuses {
  const found: Statuses = new Map();
  const suites: { name: string; indent: number }[] = [];
  for (const chunk of log.split(" ./node_modules/.bin/jest ").slice(1))
    for (const line of linesOf(chunk)) {
      if (line.startsWith("Test Suites") || line.startsWith("  ● ")) break;
      const indent = line.length - line.trimStart().length;
      const [, tick, rest = ""] = /^\s+([✓✕])\s(.*)$/su.exec(line) ?? [];
      const timed = /\(\d+ms\)/.test(line);
      if (/^\s*[✓✕]/u.test(line) && (tick === undefined || (timed && !/\(\d+ms\)$/.test(line))))
        throw new UnreadableLog(`the log has a test that is not indented, or text behind its time: ${JSON.stringify(line.slice(0, 200))}`);
      if (tick !== undefined) {
        const name = rest.replace(/\(\d+ms\)$/, "");
        found.set([suites.map((suite) => suite.name).join(" - "), name].join(" - ").trim(), tick === "✓" ? "PASSED" : "FAILED");
      } else if (indent > 0) {
        while ((suites.at(-1)?.indent ?? -1) >= indent) suites.pop();
        if (suites.length < deepestBlock) suites.push({ name: line.trim(), indent });
      }
    }
  return found;
}
