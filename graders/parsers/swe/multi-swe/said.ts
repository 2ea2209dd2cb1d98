/**
 * Collects what a log of Multi-SWE-bench says of its tests. The set's code keeps three sets of names. It gives a log up if a name is
 * in two of them; the instance is then not resolved.
 */
import { type Statuses, UnreadableLog } from "../status-log.ts";

export type SaidWord = "PASSED" | "FAILED" | "SKIPPED";

/** Three sets of names of tests. No name may be in two. */
export class Said {
  readonly sets: Record<SaidWord, Set<string>> = { PASSED: new Set(), FAILED: new Set(), SKIPPED: new Set() };

  add(word: SaidWord, name: string): void {
    this.sets[word].add(name);
  }

  /** The rule for logs of Go and of jib: a failure stays, and a skipped test is kept only if it failed before. */
  replace(word: SaidWord, name: string, kept = name): void {
    const { PASSED, FAILED, SKIPPED } = this.sets;
    if (word === "SKIPPED" && (PASSED.has(name) || !FAILED.has(name))) return;
    if (word === "PASSED" && FAILED.has(name)) return;
    if (word === "FAILED") PASSED.delete(name);
    if (word !== "SKIPPED") SKIPPED.delete(name);
    this.sets[word].add(kept);
  }

  statuses(): Statuses {
    const found: Statuses = new Map();
    for (const word of ["PASSED", "FAILED", "SKIPPED"] as const)
      for (const name of this.sets[word]) {
        if (found.has(name))
          throw new UnreadableLog(`the log says ${found.get(name)} and ${word} of ${JSON.stringify(name.slice(0, 200))}`);
        found.set(name, word);
      }
    return found;
  }
}
