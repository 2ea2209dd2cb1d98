/** Has this process find the hidden tests in memory, and the work in its own process or in this one. */
import { loadApart } from "./apart.ts";
import { loadFromMemory, type MemoryFiles, memoryFiles } from "./memory-files.ts";
import type { RunnerInput } from "./sealed-report.ts";

export function loadTests({ memory, socket, changed }: RunnerInput): MemoryFiles {
  const files = memoryFiles(memory);
  if (socket === null) loadFromMemory(files);
  else loadApart(files, socket, changed);
  return files;
}
