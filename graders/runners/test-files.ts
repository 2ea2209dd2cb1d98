/**
 * The test files that a runner was given: files as they are, folders as every JavaScript file below them, sorted. In a
 * folder what the work added is no test: it must not report. Where the work runs apart, only the hidden tests are run, for
 * any other file may be the work's.
 */
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, resolve, sep } from "node:path";
import type { MemoryFiles } from "./memory-files.ts";
import type { RunnerInput } from "./sealed-report.ts";

export function testFiles(args: string[], { added, socket }: RunnerInput, memory: MemoryFiles): string[] {
  const others = new Set(added.map((path) => resolve(path)));
  return args.flatMap((arg) => {
    const path = resolve(arg);
    if (memory.has(path)) return [path];
    const hidden = [...memory.keys()].filter((file) => file.startsWith(path + sep));
    if (socket !== null) return hidden.filter(isTest).sort();
    if (!existsSync(path) || !statSync(path).isDirectory()) return hidden.length > 0 ? hidden.filter(isTest).sort() : [path];
    const onDisk = readdirSync(path, { recursive: true, encoding: "utf8" })
      .map((name) => resolve(path, name))
      .filter((file) => !isIn(file, others));
    return [...new Set([...hidden, ...onDisk])].filter(isTest).sort();
  });
}

function isTest(path: string): boolean {
  return /\.[cm]?js$/.test(path) && !path.split(/[\\/]/).includes("node_modules");
}

/** Whether the path itself or a folder above it is one of them. */
function isIn(path: string, others: Set<string>): boolean {
  return others.has(path) || (dirname(path) !== path && isIn(dirname(path), others));
}
