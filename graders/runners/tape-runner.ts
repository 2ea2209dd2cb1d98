/**
 * `node tape-runner.ts <file or folder …>`: requires the files as tape's own command does, and reports each test from
 * tape's object stream. tape itself comes from NODE_PATH and is loaded before the work, so that one planted in the
 * work's node_modules is not the one that reports.
 */
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { loadTests } from "./load-tests.ts";
import { filesWithTodo } from "./said-todo.ts";
import { openReport } from "./sealed-report.ts";
import { testFiles } from "./test-files.ts";

type TapeRow =
  | { type: "test"; id: number; name: string; parent?: number; skip?: boolean; todo?: boolean }
  | { type: "assert"; test: number; ok: boolean; skip?: unknown; todo?: unknown }
  | { type: "end"; test: number };
type TapeStream = { on(event: "data", listener: (row: TapeRow) => void): TapeStream; on(event: "end", listener: () => void): TapeStream };
type Open = { name: string; failed: boolean; skipped: boolean };

const report = openReport();
const dependencies = process.env.NODE_PATH?.split(delimiter)[0];
if (!dependencies) throw new Error("NODE_PATH must name the folder that holds tape");
const require = createRequire(join(dependencies, "runner.cjs"));
const tape = require("tape") as { createStream(options: { objectMode: true }): TapeStream };

const memory = loadTests(report.input);
const files = testFiles(process.argv.slice(2), report.input, memory);
const saysTodo = filesWithTodo(files, report.input, memory).size > 0;
const open = new Map<number, Open>();
tape
  .createStream({ objectMode: true })
  .on("data", (row) => {
    if (row.type === "test") {
      const parent = row.parent === undefined ? undefined : open.get(row.parent);
      open.set(row.id, { name: parent ? `${parent.name} > ${row.name}` : row.name, failed: false, skipped: Boolean(row.skip) });
    } else if (row.type === "assert") {
      const test = open.get(row.test);
      if (test && !row.ok && !(row.todo && saysTodo)) test.failed = true;
    } else if (row.type === "end") {
      const test = open.get(row.test);
      if (test) report.test(test.name, test.failed ? "failed" : test.skipped ? "skipped" : "passed");
    }
  })
  .on("end", () => report.complete());

for (const file of files) require(file);
