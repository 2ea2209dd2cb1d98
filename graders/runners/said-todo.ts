/**
 * Which files may say of a test that it is to do, which makes its failure none. In one process the work may say so of any
 * test, so the word must stand in the files as they are before anything is loaded.
 */
import { readFileSync } from "node:fs";
import type { MemoryFiles } from "./memory-files.ts";
import type { RunnerInput } from "./sealed-report.ts";

/** `test.todo(…)`, `t.todo(…)` and `{ todo: … }`: not a comment, nor the name of a list. */
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
