/**
 * SWE-rebench-V2's parsers that go line by line: the first rule that fits a line says which test it names and how that
 * ended. Beginnings and ends are looked for apart, so that a line of any kind is read in a time that grows with its length.
 */
import { type Status, type Statuses, splitLines } from "../status-log.ts";

export type ReadingRule = {
  /** The name is the group `name`, or else the first one. */
  line: RegExp;
  /** One status of all such lines, or those that the words of the group `word` stand for. Absent words name no test. */
  status: Status | ReadonlyMap<string, Status>;
  /** An earlier status of the test stands. */
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
