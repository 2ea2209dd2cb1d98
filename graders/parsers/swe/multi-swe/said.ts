/**
 * What a log of Multi-SWE-bench says of its tests. The set's code keeps three sets and gives a log up that has one test in
 * two of them; its instance is then not resolved.
 */
import { type Statuses, UnreadableLog } from "../status-log.ts";

export type SaidWord = "PASSED" | "FAILED" | "SKIPPED";

/** What a log says of its tests, as sets: none may be in two. */
export class Said {
  readonly sets: Record<SaidWord, Set<string>> = { PASSED: new Set(), FAILED: new Set(), SKIPPED: new Set() };

  add(word: SaidWord, name: string): void {
    this.sets[word].add(name);
  }

  /** The rule of the set's logs of Go and of jib: a failure stands, and a skipped test is kept only where it failed before. */
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
