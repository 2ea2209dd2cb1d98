/** `go test -v` as the instances of Multi-SWE-bench read it. */
import { type Statuses, splitLines } from "../status-log.ts";
import type { WordRule } from "./by-lines.ts";
import { Said } from "./said.ts";

/** A line of Go's says a test's status; another one that begins with FAIL names a package or the word behind it. */
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
