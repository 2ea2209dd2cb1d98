/**
 * The test files that a runner was given: files as they are, folders as every JavaScript file below them, sorted. In a
 * folder what the work added (`added`: paths from the workdir) is no test: it must not report.
 */
import { readdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

export function testFiles(args: string[], added: string[]): string[] {
  const others = new Set(added.map((path) => resolve(path)));
  return args.flatMap((arg) => {
    const path = resolve(arg);
    if (!statSync(path).isDirectory()) return [path];
    return readdirSync(path, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.[cm]?js$/.test(name) && !name.split(/[\\/]/).includes("node_modules"))
      .sort()
      .map((name) => resolve(path, name))
      .filter((file) => !isIn(file, others));
  });
}

/** Whether the path itself or a folder above it is one of them. */
function isIn(path: string, others: Set<string>): boolean {
  return others.has(path) || (dirname(path) !== path && isIn(dirname(path), others));
}
