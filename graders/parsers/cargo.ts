/**
 * The log of `cargo test`: one block for each program of tests, with its own totals. A test is known by its path alone, for
 * a log does not name its program where Cargo's own lines (stderr) are kept apart.
 */
import { logParser } from "./log-parser.ts";
import type { TestOutcome } from "./report-parser.ts";
import type { TestList } from "./test-list.ts";

export const cargo = logParser({ name: "cargo", title: "the log of cargo test", read });

const totals = /^test result: (?:ok|FAILED)\. (\d+) passed; (\d+) failed; (\d+) ignored; (\d+) measured;/;

type Block = { announced: number; listed: TestOutcome[] };

function read(lines: string[], list: TestList): void {
  let blocks = 0;
  let open: Block | null = null;
  /** With --nocapture the outcome stands behind what the test printed. */
  let waiting: string | null = null;
  for (const line of lines) {
    const begins = /^running (\d+) tests?$/.exec(line);
    const total = totals.exec(line);
    if (begins) {
      if (open) list.complain("a block of tests begins inside another");
      open = { announced: Number(begins[1]), listed: [] };
    } else if (total) {
      blocks++;
      if (open) closeBlock(list, open, total.slice(1, 5).map(Number));
      else list.complain("a block of tests ends and had not begun");
      open = null;
    } else if (open) {
      const test = /^test (.+) \.\.\. (.*)$/.exec(line);
      const name: string | null = test ? (test[1] as string).replace(/ - should panic$/, "") : waiting;
      const outcome = outcomeOf(test ? (test[2] as string) : line);
      if (name !== null && outcome !== null) {
        open.listed.push(outcome);
        list.add(name, outcome);
      }
      if (test || outcome !== null) waiting = outcome === null ? name : null;
    }
  }
  if (blocks === 0) list.expectOne("line with the result of the tests", 0);
  if (open) list.complain("the log ends inside a block of tests");
  const programs = lines.filter((line) => /^ +(?:Running .+ \(.+\)|Doc-tests \S+)$/.test(line)).length;
  if (programs > blocks) list.complain(`Cargo ran ${programs} programs of tests, and ${blocks} came to their end`);
}

function outcomeOf(text: string): TestOutcome | null {
  if (text === "ok") return "passed";
  if (text === "FAILED") return "failed";
  return /^ignored(?:, |$)/.test(text) ? "skipped" : null;
}

function closeBlock(list: TestList, { announced, listed }: Block, [passed = 0, failed = 0, ignored = 0, measured = 0]: number[]): void {
  const count = (outcome: TestOutcome) => listed.filter((one) => one === outcome).length;
  list.expect("passed", passed, count("passed"));
  list.expect("failed", failed, count("failed"));
  list.expect("ignored", ignored, count("skipped"));
  list.expect("announced", announced, passed + failed + ignored + measured);
}
