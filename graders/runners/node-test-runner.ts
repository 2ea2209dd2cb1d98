/**
 * `node node-test-runner.ts <file or folder …>`: runs the files with node:test in this process and reports each test
 * with the names of its suites before it. Only tests that a listed file defines count: the work may define its own.
 */
import { run } from "node:test";
import { openReport } from "./sealed-report.ts";
import { testFiles } from "./test-files.ts";

const report = openReport();
const files = testFiles(process.argv.slice(2));
const listed = new Set(files);
const path: string[] = [];

const stream = run({ files, isolation: "none" });
stream.on("test:start", ({ name, nesting }) => {
  path[nesting] = name;
  path.length = nesting + 1;
});
const ended =
  (passed: boolean) =>
  ({ name, nesting, file, skip, todo }: { name: string; nesting: number; file?: string; skip?: unknown; todo?: unknown }) => {
    if (file === undefined || !listed.has(file)) return;
    const full = [...path.slice(0, nesting), name].join(" > ");
    report.test(full, skip !== undefined && skip !== false ? "skipped" : passed || todo ? "passed" : "failed");
  };
stream.on("test:pass", ended(true));
stream.on("test:fail", ended(false));
stream.on("end", () => report.complete());
stream.resume();
