/**
 * Whether the tests themselves say of one that it is to do, which makes its failure none. In one process the work may say so
 * of any test, so the word must stand in the files, as they are before anything is loaded.
 */
import { readFileSync } from "node:fs";
import type { MemoryFiles } from "./memory-files.ts";

export function filesWithTodo(files: readonly string[], memory: MemoryFiles): ReadonlySet<string> {
  return new Set(files.filter((file) => /\btodo\b/i.test(memory.get(file) ?? textOf(file))));
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
