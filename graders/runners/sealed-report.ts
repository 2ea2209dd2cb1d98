/**
 * Runs inside the grading sandbox, in the process of the tests. What the work prints, or has the tests print, cannot be
 * told from what a test framework prints, so a runner writes its own rows and seals each with a key that it read from
 * stdin before anything else was loaded: sha-256 over key and text, with a running number inside. The key is the first
 * line there; the second one is the rest of the input.
 *
 * Where the work runs apart, the key is out of its reach. In one process with it the key is no secret from code that looks
 * for it in memory. All that is used later is taken here, for the work may replace what it finds on shared objects.
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

/** Paths are from the workdir. */
export type RunnerInput = {
  /** What the work added: no test of ours. */
  added: string[];
  /** What the work added or changed. */
  changed: string[];
  /** The hidden tests that are code: path -> source. They are not on the disk. */
  memory: Record<string, string>;
  /** Where the process of the work listens; null: the work is loaded into this process. */
  socket: string | null;
};

export type SealedReport = {
  input: RunnerInput;
  test(name: string, outcome: SealedOutcome): void;
  /**
   * The last row: without it a report counts as cut off. It ends the process, for a timer that the work left running
   * would keep it until the grader's limit, and the tests are done.
   */
  complete(): never;
};

export function openReport(): SealedReport {
  const [key = "", input = ""] = fs.readFileSync(0, "utf8").split("\n");
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
    input: JSON.parse(input) as RunnerInput,
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
