/**
 * SWE-rebench-V2's parsers that read line by line. The first rule that fits a line says which test it names and how the test ended.
 * Rules look for a line's beginning and end apart, so the time to read a line grows linearly with its length.
 */
import { type Status, type Statuses, splitLines } from "../status-log.ts";

export type ReadingRule = {
  /** The group `name` is the test's name, else the first group. */
  line: RegExp;
  /** The status of all such lines, or a map from the group `word` to a status. A line with another word names no test. */
  status: Status | ReadonlyMap<string, Status>;
  /** The test keeps an earlier status. */
  keeps?: boolean;
  nameOf?: (name: string) => string;
};

export type LineReader = { rules: readonly ReadingRule[]; clean?: (line: string) => string };

export function readLines({ rules, clean = (line) => line.trim() }: LineReader): (log: string) => Statuses {
  return (log) => {
    const found: Statuses = new Map();
    for (const line of splitLines(log).map(clean)) if (line !== "") readLine(line, rules, found);
    return found;
  };
}

function readLine(line: string, rules: readonly ReadingRule[], found: Statuses): void {
  for (const rule of rules) {
    const match = rule.line.exec(line);
    if (match === null) continue;
    const name = match.groups?.name ?? match[1] ?? "";
    const status = typeof rule.status === "string" ? rule.status : rule.status.get(match.groups?.word ?? "");
    const whole = rule.nameOf ? rule.nameOf(name) : name;
    if (status !== undefined && whole !== "" && !(rule.keeps && found.has(whole))) found.set(whole, status);
    return;
  }
}
