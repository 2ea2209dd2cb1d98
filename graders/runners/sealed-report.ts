/**
 * Runs inside the grading sandbox, in the process that also loads the work. What the work prints cannot be told from
 * what a test framework prints, so a runner writes its own rows and seals each with a key that it read from stdin before
 * anything of the work was loaded: sha-256 over key and text, with a running number inside. The key is the first line
 * there; the second one lists the files that may hold tests.
 *
 * All that is used later is taken here, for the work may replace what it finds on shared objects. What this does not
 * stop: code that looks for the key in its own process's memory, and code that tampers with the test framework.
 */
import crypto from "node:crypto";
import fs from "node:fs";

const writeSync = fs.writeSync;
const hash = crypto.hash;
const stringify = JSON.stringify;
const wait = Atomics.wait;
const exit = process.exit.bind(process);
const pause = new Int32Array(new SharedArrayBuffer(4));

export type SealedOutcome = "passed" | "failed" | "skipped";

export type SealedReport = {
  /** Files that were delivered or are the grader's own, as paths from the workdir: no other is a test of ours. */
  files: string[];
  test(name: string, outcome: SealedOutcome): void;
  /**
   * The last row: without it a report counts as cut off. It ends the process, for a timer that the work left running
   * would keep it until the grader's limit, and the tests are done.
   */
  complete(): never;
};

export function openReport(): SealedReport {
  const [key = "", files = ""] = fs.readFileSync(0, "utf8").split("\n");
  let sequence = 0;
  const row = (kind: string, name: string | null, outcome: string | null) => {
    // Without a prototype, no planted toJSON runs.
    const fields = Object.assign(Object.create(null), { kind, name, outcome, sequence: sequence++ });
    const text = stringify(fields);
    // It begins on a new line, even after other output.
    writeAll(`\n@report ${hash("sha256", key + hash("sha256", key + text))} ${text}\n`);
  };
  row("begun", null, null);
  return {
    files: JSON.parse(files) as string[],
    test: (name, outcome) => row("test", name, outcome),
    complete: () => {
      row("complete", null, null);
      return exit(0);
    },
  };
}

/** A pipe may be full, and may have been made non-blocking by the work: wait for the reader. */
function writeAll(text: string): void {
  let rest: Uint8Array = new TextEncoder().encode(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      if ((error as { code?: unknown }).code !== "EAGAIN") throw error;
      wait(pause, 0, 0, 5);
    }
  }
}
