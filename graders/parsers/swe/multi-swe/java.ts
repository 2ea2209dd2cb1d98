/** Reads logs of Maven and Gradle as the instances of Multi-SWE-bench do. */
import { linesOf, type Statuses, splitLines } from "../status-log.ts";
import type { WordRule } from "./by-lines.ts";
import { Said } from "./said.ts";

const surefire = /Tests run: (\d{1,9}), Failures: (\d{1,9}), Errors: (\d{1,9}), Skipped: (\d{1,9}), Time elapsed: [\d.]{1,20} (.*)$/s;

/** Counts a class as one test. It passed if a test of it ran, none failed, and not all were skipped. */
function addClass(said: Said, name: string, counted: (string | undefined)[]): void {
  const [run = 0, failures = 0, errors = 0, skipped = 0] = counted.map(Number);
  if (failures > 0 || errors > 0) said.add("FAILED", name);
  else if (skipped === run) said.add("SKIPPED", name);
  else if (run > 0) said.add("PASSED", name);
}

/** Reads Maven's lines of classes that end in the class's name. */
export function maven(log: string): Statuses {
  const said = new Said();
  for (const line of splitLines(log)) {
    const [, run, failures, errors, skipped, rest = ""] = surefire.exec(line) ?? [];
    // At least one character must stand between the time and the word `in`.
    const at = rest.indexOf(" in ", 1);
    if (run !== undefined && at !== -1 && at + 4 < rest.length) addClass(said, rest.slice(at + 4), [run, failures, errors, skipped]);
  }
  return said.statuses();
}

/** Removes colours as Maven writes them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: a colour begins with one
export const withoutColours = (log: string): string => log.replace(/\x1b\[[0-?]{0,32}[mK]/g, "");

const totals =
  /^Tests run:\s*(\d{1,9}),\s*Failures:\s*(\d{1,9}),\s*Errors:\s*(\d{1,9}),\s*Skipped:\s*(\d{1,9}),\s*Time elapsed:\s*[\d.]{1,20}\s*sec( {1,9}<<< FAILURE!)?/;

/** Reads old Surefire, as Gson has it. The class is named by the first line `Running` before the line with its counts. */
export function runningLines(log: string): Statuses {
  const said = new Said();
  let running: string | null = null;
  let above: string | undefined;
  for (const line of linesOf(log)) {
    const started = /Running\s{1,64}(\S.*)$/s.exec(line)?.[1]?.trimEnd();
    const [, run, failures, errors, skipped, failed] = totals.exec(line) ?? [];
    if (run !== undefined && running !== null) addClass(said, running, [run, failures, errors, skipped]);
    if (failed !== undefined && above !== undefined) said.add("FAILED", above);
    if (line.startsWith("Tests run:")) running = null;
    else running ??= started ?? null;
    above = started;
  }
  return said.statuses();
}

/** Gradle's tasks count as tests too. A test of a class has ` > ` in it. The patterns check the end first, so long lines take no long time. */
const gradleRules: readonly WordRule[] = [
  ["PASSED", /^> Task :(\S+)(?: UP-TO-DATE)?$/],
  ["PASSED", /^(?=.* PASSED$)(.+? > .+) PASSED$/s],
  ["FAILED", /^> Task :(\S+) FAILED$/],
  ["FAILED", /^(?=.* FAILED$)(.+? > .+) FAILED$/s],
  ["SKIPPED", /^> Task :(\S+) (?:SKIPPED|NO-SOURCE)$/],
  ["SKIPPED", /^(?=.* SKIPPED$)(.+? > .+) SKIPPED$/s],
];

const cached: WordRule = ["PASSED", /^> Task :(\S+) FROM-CACHE$/];

/** A failure stays, whatever the log says later. */
function tasks(rules: readonly WordRule[]): (log: string) => Statuses {
  return (log) => {
    const said = new Said();
    for (const line of splitLines(log))
      for (const [word, rule] of rules) {
        const name = rule.exec(line)?.[1];
        if (name === undefined || (word === "PASSED" && said.sets.FAILED.has(name))) continue;
        if (word === "FAILED") said.sets.PASSED.delete(name);
        said.add(word, name);
      }
    return said.statuses();
  };
}

export const gradle = tasks(gradleRules);
export const gradleCached = tasks([cached, ...gradleRules]);

/** Reads jib's log. Its lines are trimmed. */
export function jib(log: string): Statuses {
  const said = new Said();
  for (const line of splitLines(log).map((raw) => raw.trim()))
    for (const [word, rule] of [cached, ...gradleRules]) {
      const name = rule.exec(line)?.[1];
      if (name !== undefined) said.replace(word, name);
    }
  return said.statuses();
}
