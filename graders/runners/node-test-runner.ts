/**
 * `node node-test-runner.ts <file or folder …>`: runs the files with node:test in this process and reports each test
 * with the names of its suites before it. Only tests that a listed file defines count: the work may define its own.
 */
import { EventEmitter } from "node:events";
import { run } from "node:test";
import { fileURLToPath } from "node:url";
import { guardFramework } from "./guard-framework.ts";
import { loadTests } from "./load-tests.ts";
import { filesWithTodo } from "./said-todo.ts";
import { openReport } from "./sealed-report.ts";
import { testFiles } from "./test-files.ts";

const report = openReport();
const memory = loadTests(report.input);
const files = testFiles(process.argv.slice(2), report.input, memory);
const toDo = filesWithTodo(files, report.input, memory);
const isWhole = guardFramework();
const listed = new Set(files);
const path: string[] = [];
const lastTest = fileURLToPath(import.meta.url).replace(/node-test-runner(\.[a-z]+)$/, "last-test$1");

// Top-level tests run one after the other, in the order of their definition. The work can define the last test early, so the last test
// alone proves nothing: no other test may still be waiting.
let waiting = 0;
let lastSeen = false;
const stream = run({ files: [...files, lastTest], isolation: "none" });
// The work may replace the prototype's: what the framework says comes through this one.
Object.defineProperty(stream, "emit", { value: EventEmitter.prototype.emit });
stream.on("test:enqueue", ({ nesting }) => {
  if (nesting === 0) waiting += 1;
});
stream.on("test:start", ({ name, nesting }) => {
  path[nesting] = name;
  path.length = nesting + 1;
});
const ended =
  (passed: boolean) =>
  ({ name, nesting, file, skip, todo }: { name: string; nesting: number; file?: string; skip?: unknown; todo?: unknown }) => {
    if (file !== undefined && listed.has(file)) {
      const full = [...path.slice(0, nesting), name].join(" > ");
      const isSkipped = skip !== undefined && skip !== false;
      const holds = passed || (Boolean(todo) && toDo.has(file));
      report.test(full, !isWhole() ? "failed" : isSkipped ? "skipped" : holds ? "passed" : "failed");
    }
    if (nesting === 0) waiting -= 1;
    lastSeen ||= file === lastTest;
    if (lastSeen && waiting === 0) report.complete();
  };
stream.on("test:pass", ended(true));
stream.on("test:fail", ended(false));
stream.resume();
