/**
 * The test files that a runner was given: files as they are, folders as every JavaScript file below them, sorted. In a
 * folder only files of `known` (paths from the workdir) are tests: what the work put beside them must not report.
 */
import { readdirSync, statSync } from "node:fs";
import { resolve } from "node:path";

export function testFiles(args: string[], known: string[]): string[] {
  const tests = new Set(known.map((path) => resolve(path)));
  return args.flatMap((arg) => {
    const path = resolve(arg);
    if (!statSync(path).isDirectory()) return [path];
    return readdirSync(path, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.[cm]?js$/.test(name) && !name.split(/[\\/]/).includes("node_modules"))
      .sort()
      .map((name) => resolve(path, name))
      .filter((file) => tests.has(file));
  });
}
