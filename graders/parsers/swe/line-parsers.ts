/** Logs in which a line names a test and says how it ended: one row of the table a runner, as the SWE sets read it. */
import type { ReportParser } from "../report-parser.ts";
import { linesOf, type Status, type Statuses, sweParser } from "./status-log.ts";

type LineRule = {
  names: readonly string[];
  title: string;
  /** On a line without the blanks around it; the groups are `word` and `name`. */
  line: RegExp;
  words: Readonly<Record<string, Status>>;
  /** Changes a name, where the runner adds something to those of a kind. */
  nameOf?: (name: string, word: string) => string;
  steeredBy?: readonly string[];
};

const ticks = { "✓": "PASSED", "✕": "FAILED", "○": "SKIPPED" } as const;
const letters = { ".": "PASSED", F: "FAILED", E: "FAILED" } as const;

const rows: readonly LineRule[] = [
  {
    names: ["parse_log_gotest"],
    title: "go test -v",
    line: /^--- (?<word>PASS|FAIL|SKIP): (?<name>.+) \(.+\)$/,
    words: { PASS: "PASSED", FAIL: "FAILED", SKIP: "SKIPPED" },
    steeredBy: ["**/*_test.go"],
  },
  {
    names: ["parse_log_cargo"],
    title: "cargo test",
    line: /^test\s+(?<name>\S+)\s+\.\.\.\s+(?<word>\w+)$/,
    words: { ok: "PASSED", FAILED: "FAILED" },
  },
  {
    names: ["parse_log_jest"],
    title: "jest --verbose",
    line: /^(?<word>[✓✕○])\s(?<name>.+?)(?:\s\(\d+\s*m?s\))?$/u,
    words: ticks,
    nameOf: (name) => name.trim(),
  },
  {
    names: ["parse_log_jest_json"],
    title: "jest, a line a test",
    line: /^\[(?<word>PASSED|FAILED)\]\s(?<name>.+)$/,
    words: { PASSED: "PASSED", FAILED: "FAILED" },
  },
  {
    names: ["parse_log_vitest"],
    title: "vitest --reporter=verbose",
    line: /^(?<word>[✓×↓])\s(?<name>.+?)(?:\s(?:\d+\s*m?s?|\[skipped\]))?$/u,
    words: { "✓": "PASSED", "×": "FAILED", "↓": "SKIPPED" },
  },
  { names: ["parse_log_tap"], title: "TAP", line: /^(?<word>ok|not ok) \d+ (?<name>.+)$/, words: { ok: "PASSED", "not ok": "FAILED" } },
  {
    names: ["parse_log_redis"],
    title: "the Tcl tests of Redis",
    line: /^\[(?<word>ok|err|skip|ignore)\]:\s(?<name>.+?)(?:\s\(\d+\s*m?s\))?$/,
    words: { ok: "PASSED", err: "FAILED", skip: "SKIPPED", ignore: "SKIPPED" },
    nameOf: (name, word) => (word === "err" ? name.replace(/\s+in\s+\S+$/, "") : name),
  },
  {
    names: ["parse_log_jq"],
    title: "Automake's tests",
    line: /^(?<word>PASS|FAIL):\s(?<name>.+)$/,
    words: { PASS: "PASSED", FAIL: "FAILED" },
  },
  {
    names: ["parse_log_micropython_test"],
    title: "MicroPython's run-tests",
    line: /^(?<word>pass|FAIL|skip)\s+(?<name>.+)$/,
    words: { pass: "PASSED", FAIL: "FAILED", skip: "SKIPPED" },
  },
  {
    names: ["parse_log_googletest"],
    title: "GoogleTest",
    line: /^.*\[\s*(?<word>OK|FAILED)\s*\]\s(?<name>.*)\s\(.*\)$/,
    words: { OK: "PASSED", FAILED: "FAILED" },
  },
  {
    names: ["parse_log_ant"],
    title: "Ant's junit",
    line: /^\[junit\]\s+\[(?<word>PASS|FAIL|ERR)\]\s+(?<name>.*)$/,
    words: { PASS: "PASSED", FAIL: "FAILED", ERR: "FAILED" },
  },
  { names: ["parse_log_minitest"], title: "minitest -v", line: /^(?<name>.+)\. .*=.*(?<word>[.FE]).*$/, words: letters },
  { names: ["parse_log_cucumber"], title: "cucumber --format progress", line: /^(?<name>.*) \.+(?<word>[.F])/, words: letters },
  {
    names: ["parse_log_ruby_unit"],
    title: "test-unit -v",
    line: /^(?:test: )?(?<name>.+):\s+(?<word>\.|[EFO]\b)/,
    words: { ...letters, O: "SKIPPED" },
  },
  {
    names: ["parse_log_rspec_transformed_json"],
    title: "RSpec, a line a test",
    line: /^(?<name>.+) - (?<word>passed|failed)/,
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

export const lineParsers: readonly ReportParser[] = rows.flatMap((row) =>
  row.names.map((name) =>
    sweParser({ name, title: `SWE sets: ${row.title}`, ...(row.steeredBy && { steeredBy: row.steeredBy }), read: (log) => read(log, row) }),
  ),
);
