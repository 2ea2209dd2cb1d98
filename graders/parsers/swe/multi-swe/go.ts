/** Reads `go test -v` as the instances of Multi-SWE-bench do. */
import { type Statuses, splitLines } from "../status-log.ts";
import type { WordRule } from "./by-lines.ts";
import { Said } from "./said.ts";

/** Go's lines say a test's status. Another line that begins with FAIL counts as a failed test, named by its next word. */
export function go(nameOf: (name: string) => string): (log: string) => Statuses {
  const rules: readonly WordRule[] = [
    ["PASSED", /^--- PASS: (\S+)/],
    ["FAILED", /^--- FAIL: (\S+)/],
    ["FAILED", /^FAIL:?\s?(.\S*)\s/s],
    ["SKIPPED", /^--- SKIP: (\S+)/],
  ];
  return (log) => {
    const said = new Said();
    for (const line of splitLines(log).map((raw) => raw.trim()))
      for (const [word, rule] of rules) {
        const name = rule.exec(line)?.[1];
        if (name !== undefined) said.replace(word, name, nameOf(name));
      }
    return said.statuses();
  };
}

export function withoutSubtest(name: string): string {
  const slash = name.lastIndexOf("/");
  return slash === -1 ? name : name.slice(0, slash);
}
