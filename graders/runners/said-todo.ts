/**
 * Finds the files that may mark a test as `todo`. The failure of such a test does not count. The submission runs in the same process and
 * could mark any test. So the mark must be in a file before any code is loaded.
 */
import { readFileSync } from "node:fs";
import type { MemoryFiles } from "./memory-files.ts";
import type { RunnerInput } from "./sealed-report.ts";

/** Matches `test.todo(…)`, `t.todo(…)` and `{ todo: … }`, but neither a comment nor a variable of that name. */
const says = /\.todo\s*\(|\btodo\s*:/;

export function filesWithTodo(files: readonly string[], { socket }: RunnerInput, memory: MemoryFiles): ReadonlySet<string> {
  return new Set(files.filter((file) => socket !== null || says.test(memory.get(file) ?? textOf(file))));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
