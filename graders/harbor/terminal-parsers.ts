/**
 * What Terminal-Bench's `run-tests.sh` prints, read as its parser of that name reads it. Each test is passed or not; a task is
 * solved where all are.
 */
import { stripVTControlCharacters } from "node:util";
import { AlidadeError } from "../../base/errors.ts";

export const terminalParserNames = ["pytest", "swebench", "sweperf", "mlebench", "swelancer"] as const;
export type TerminalParserName = (typeof terminalParserNames)[number];

/** Test -> passed. Throws `grader_error` where the output reports on no test. */
export function readTerminal(name: TerminalParserName, output: string): Map<string, boolean> {
  // Colours stand between the words where a tool writes them without a terminal.
  const results = parsers[name](stripVTControlCharacters(output));
  if (results.size === 0) throw failure(`the short test summary of ${script} names no test`);
  return results;
}

const script = "run-tests.sh";

const parsers: Record<TerminalParserName, (output: string) => Map<string, boolean>> = {
  pytest,
  swebench: between("SWEBench results", "PASSED"),
  sweperf: between("SWE-Perf results", "PASSED"),
  mlebench: between("MLEBench results", "ALL TESTS PASSED"),
  swelancer,
};

const passing = new Set(["PASSED", "XFAIL", "SKIPPED"]);
const failing = new Set(["FAILED", "XPASS", "ERROR"]);

/** The lines behind pytest's heading: a word, and the test behind the first `::`. */
function pytest(output: string): Map<string, boolean> {
  const results = new Map<string, boolean>();
  for (const line of behindHeading(output).split(/\r?\n/)) {
    const [, first = "", rest = ""] = /^\s*(\S+)\s+(\S.*)$/.exec(line) ?? [];
    const word = first.endsWith(":") ? first.slice(0, -1) : first;
    if (!passing.has(word) && !failing.has(word)) continue;
    const name = nameOf(word === "FAILED" ? withoutMessage(rest) : rest);
    // Tests of two files may have one name: both must pass.
    results.set(name, passing.has(word) && results.get(name) !== false);
  }
  return results;
}

/** Words between signs of equality. No regular expression looks for the signs: a hostile output has megabytes of them. */
function behindHeading(output: string): string {
  for (const { 0: words, index } of output.matchAll(/short test summary info/gi)) {
    const rest = output.slice(index + words.length);
    if (output.slice(0, index).trimEnd().endsWith("=") && rest.trimStart().startsWith("=")) return rest;
  }
  throw failure(`${script} printed no "short test summary info" of pytest`);
}

function withoutMessage(rest: string): string {
  const at = rest.lastIndexOf(" - ");
  return at === -1 ? rest : rest.slice(0, at);
}

function nameOf(path: string): string {
  const at = path.indexOf("::");
  return at === -1 ? path.trim() : path.slice(at + 2).trim();
}

/** One word between two marks. */
function between(title: string, passed: string): (output: string) => Map<string, boolean> {
  const [start, end] = [`${title} starts here`, `${title} ends here`];
  return (output) => {
    const [from, to] = [output.indexOf(start), output.lastIndexOf(end)];
    if (from === -1 || to < from) throw failure(`${script} printed no result between "${start}" and "${end}"`);
    return new Map([["tests", output.slice(from + start.length, to).trim() === passed]]);
  };
}

function swelancer(output: string): Map<string, boolean> {
  const isSaid = (word: string) => output.toLowerCase().includes(`swe lancer ${word}`);
  // A work that prints the one word does not outvote the script, which says the other.
  if (isSaid("success") === isSaid("failure"))
    throw failure(`${script} said ${isSaid("success") ? "both" : "neither"} SWE LANCER SUCCESS and FAILURE`);
  return new Map([["tests", isSaid("success")]]);
}

function failure(message: string): AlidadeError {
  return new AlidadeError("grader_error", message);
}
