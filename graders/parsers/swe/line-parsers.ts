/** Reads logs in which one line names a test and says how it ended. The table has a row for each runner, as the SWE sets read it. */
import type { ReportParser } from "../report-parser.ts";
import { linesOf, type Status, type Statuses, sweParser } from "./status-log.ts";

type LineRule = {
  names: readonly string[];
  title: string;
  /** Tried on the trimmed line. Its groups are `word` and `name`. */
  line: Pick<RegExp, "exec">;
  words: Readonly<Record<string, Status>>;
  /** Changes a name, if the runner adds something to it. */
  nameOf?: (name: string, word: string) => string;
  steeredBy?: readonly string[];
};

const ticks = { "✓": "PASSED", "✕": "FAILED", "○": "SKIPPED" } as const;
const letters = { ".": "PASSED", F: "FAILED", E: "FAILED" } as const;

/**
 * Reads `name. class = 0.01 s = .`: the last letter of the line, and the name, which ends at the last `. ` before the last `=`. One
 * regular expression for this would take a time that grows with the third power of the line's length.
 */
const minitestLine: LineRule["line"] = {
  exec(line) {
    const at = Math.max(line.lastIndexOf("."), line.lastIndexOf("F"), line.lastIndexOf("E"));
    const equals = at < 1 ? -1 : line.lastIndexOf("=", at - 1);
    const dot = equals < 2 ? -1 : line.lastIndexOf(". ", equals - 2);
    return dot < 1 ? null : /^(?<word>.)(?<name>.*)$/s.exec(`${line[at]}${line.slice(0, dot)}`);
  },
};

const rows: readonly LineRule[] = [
  {
    names: ["parse_log_gotest"],
    title: "go test -v",
    line: /^--- (?<word>PASS|FAIL|SKIP): (?=.*\)$)(?<name>.+) \(.+\)$/s,
    words: { PASS: "PASSED", FAIL: "FAILED", SKIP: "SKIPPED" },
    steeredBy: ["**/*_test.go"],
  },
  {
    names: ["parse_log_cargo"],
    title: "cargo test",
    line: /^test\s+(?<name>\S+)\s+\.\.\.\s+(?<word>\w+)$/s,
    words: { ok: "PASSED", FAILED: "FAILED" },
  },
  {
    names: ["parse_log_jest"],
    title: "jest --verbose",
    line: /^(?<word>[✓✕○])\s(?<name>.+?)(?:\s\(\d+\s*m?s\))?$/su,
    words: ticks,
    nameOf: (name) => name.trim(),
  },
  {
    names: ["parse_log_jest_json"],
    title: "jest, a line a test",
    line: /^\[(?<word>PASSED|FAILED)\]\s(?<name>.+)$/s,
    words: { PASSED: "PASSED", FAILED: "FAILED" },
  },
  {
    names: ["parse_log_vitest"],
    title: "vitest --reporter=verbose",
    line: /^(?<word>[✓×↓])\s(?<name>.+?)(?:\s(?:\d+\s*m?s?|\[skipped\]))?$/su,
    words: { "✓": "PASSED", "×": "FAILED", "↓": "SKIPPED" },
  },
  { names: ["parse_log_tap"], title: "TAP", line: /^(?<word>ok|not ok) \d+ (?<name>.+)$/s, words: { ok: "PASSED", "not ok": "FAILED" } },
  {
    names: ["parse_log_redis"],
    title: "the Tcl tests of Redis",
    line: /^\[(?<word>ok|err|skip|ignore)\]:\s(?<name>.+?)(?:\s\(\d+\s*m?s\))?$/s,
    words: { ok: "PASSED", err: "FAILED", skip: "SKIPPED", ignore: "SKIPPED" },
    nameOf: (name, word) => (word === "err" ? name.replace(/\s+in\s+\S+$/, "") : name),
  },
  {
    names: ["parse_log_jq"],
    title: "Automake's tests",
    line: /^(?<word>PASS|FAIL):\s(?<name>.+)$/s,
    words: { PASS: "PASSED", FAIL: "FAILED" },
  },
  {
    names: ["parse_log_micropython_test"],
    title: "MicroPython's run-tests",
    line: /^(?<word>pass|FAIL|skip)\s+(?<name>.+)$/s,
    words: { pass: "PASSED", FAIL: "FAILED", skip: "SKIPPED" },
  },
  {
    names: ["parse_log_googletest"],
    title: "GoogleTest",
    line: /^(?=.*\)$).*\[\s*(?<word>OK|FAILED)\s*\]\s(?<name>.*)\s\(.*\)$/s,
    words: { OK: "PASSED", FAILED: "FAILED" },
  },
  {
    names: ["parse_log_ant"],
    title: "Ant's junit",
    line: /^\[junit\]\s+\[(?<word>PASS|FAIL|ERR)\]\s+(?<name>.*)$/s,
    words: { PASS: "PASSED", FAIL: "FAILED", ERR: "FAILED" },
  },
  { names: ["parse_log_minitest"], title: "minitest -v", line: minitestLine, words: letters },
  { names: ["parse_log_cucumber"], title: "cucumber --format progress", line: /^(?<name>.*) \.+(?<word>[.F])/s, words: letters },
  {
    names: ["parse_log_ruby_unit"],
    title: "test-unit -v",
    line: /^(?:test: )?(?<name>.+):\s+(?<word>\.|[EFO]\b)/s,
    words: { ...letters, O: "SKIPPED" },
  },
  {
    names: ["parse_log_rspec_transformed_json"],
    title: "RSpec, a line a test",
    line: /^(?<name>.+) - (?<word>passed|failed)/s,
    words: { passed: "PASSED", failed: "FAILED" },
  },
];

function read(log: string, { line, words, nameOf = (name) => name }: LineRule): Statuses {
  const found: Statuses = new Map();
  for (const text of linesOf(log)) {
    const { name, word } = line.exec(text.trim())?.groups ?? {};
    if (name !== undefined && word !== undefined && Object.hasOwn(words, word)) found.set(nameOf(name, word), words[word] as Status);
  }
  return found;
}

/** Returns the reader of a name in the table, for a set that reads in the same way but counts in another. */
export function readAs(name: string): (log: string) => Statuses {
  const row = rows.find(({ names }) => names.includes(name)) as LineRule;
  return (log) => read(log, row);
}

export const lineParsers: readonly ReportParser[] = rows.flatMap((row) =>
  row.names.map((name) =>
    sweParser({ name, title: `SWE sets: ${row.title}`, ...(row.steeredBy && { steeredBy: row.steeredBy }), read: (log) => read(log, row) }),
  ),
);
