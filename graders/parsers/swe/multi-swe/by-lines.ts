/** Reads lines that name a test and say how it ended. */
import { type Statuses, splitLines } from "../status-log.ts";
import { Said, type SaidWord } from "./said.ts";

export type WordRule = readonly [SaidWord, RegExp];

/** The first group of each pattern is the name. Every rule is tried on each line. */
export function byLines(rules: readonly WordRule[], toLine = (line: string): string => line.trim()): (log: string) => Statuses {
  return (log) => {
    const said = new Said();
    for (const line of splitLines(log).map(toLine))
      for (const [word, rule] of rules) {
        const name = rule.exec(line)?.[1];
        if (name !== undefined) said.add(word, name);
      }
    return said.statuses();
  };
}
