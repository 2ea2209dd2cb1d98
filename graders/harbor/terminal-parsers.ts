/**
 * Reads what Terminal-Bench's `run-tests.sh` prints, by the rules of Terminal-Bench's parsers. A test passed or did not. A task
 * is solved if all its tests passed.
 */
import { stripVTControlCharacters } from "node:util";
import { AlidadeError } from "../../base/errors.ts";

export const terminalParserNames = ["pytest", "swebench", "sweperf", "mlebench", "swelancer"] as const;
export type TerminalParserName = (typeof terminalParserNames)[number];

/** Returns for each test whether it passed. Throws `grader_error` if the output reports on no test. */
export function readTerminal(name: TerminalParserName, output: string): Map<string, boolean> {
  // Some tools write colours also without a terminal.
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

/** Reads the lines below pytest's heading: a status, and the test's name after the first `::`. */
function pytest(output: string): Map<string, boolean> {
  const results = new Map<string, boolean>();
  for (const line of behindHeading(output).split(/\r?\n/)) {
    const [, first = "", rest = ""] = /^\s*(\S+)\s+(\S.*)$/.exec(line) ?? [];
    const word = first.endsWith(":") ? first.slice(0, -1) : first;
    if (!passing.has(word) && !failing.has(word)) continue;
    const name = nameOf(word === "FAILED" ? withoutMessage(rest) : rest);
    // Tests of two files may have the same name. Then both must pass.
    results.set(name, passing.has(word) && results.get(name) !== false);
  }
  return results;
}

/** The heading stands between `=` signs. No regular expression looks for these: a hostile output may hold megabytes of them. */
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

/** A parser that compares the text between two marks with `passed`. */
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
  // A work may print one of the words. It must not outvote the script, which prints the other.
  if (isSaid("success") === isSaid("failure"))
    throw failure(`${script} said ${isSaid("success") ? "both" : "neither"} SWE LANCER SUCCESS and FAILURE`);
  return new Map([["tests", isSaid("success")]]);
}

function failure(message: string): AlidadeError {
  return new AlidadeError("grader_error", message);
}
