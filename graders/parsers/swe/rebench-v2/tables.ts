/** SWE-rebench-V2's parsers that a table of lines describes completely. Bounds keep short whatever a pattern may try twice. */
import type { Status } from "../status-log.ts";
import type { LineReader, ReadingRule } from "./lines.ts";

const map = (...entries: [string, Status][]): ReadonlyMap<string, Status> => new Map(entries);
/** Words between spaces, as few as fit. So no part of a line is tried twice. */
const words = String.raw`\S+(?:\s+\S+)*?`;
/** Text in brackets at the end of a line. */
const bracket = String.raw`\([^)]{1,200}\)`;

const rule = (source: string, status: ReadingRule["status"], more: Partial<ReadingRule> = {}): ReadingRule => ({
  line: new RegExp(source, "s"),
  status,
  ...more,
});
const keeps = { keeps: true } as const;

const info = String.raw`^\[info\]\s+-\s+(${words})\s+`;

export const tables: readonly (readonly [names: readonly string[], title: string, reader: LineReader])[] = [
  [
    ["parse_log_elixir"],
    "ExUnit --trace",
    {
      rules: [
        rule(String.raw`^\*\s+test\s+(${words})\s+\(skipped\)\s+\[L#\d+\]$`, "SKIPPED"),
        rule(String.raw`^\d+\)\s+test\s+(${words})\s+${bracket}$`, "FAILED"),
        rule(String.raw`^\*\s+test\s+(${words})\s+\([0-9]+(?:\.[0-9]+)?ms\)\s+\[L#\d+\]$`, "PASSED", keeps),
        rule(String.raw`^\*\s+test\s+(${words})\s+\[L#\d+\]$`, "PASSED", keeps),
      ],
    },
  ],
  [
    ["parse_log_cpp_v2"],
    "lines `Test name passed`",
    {
      rules: [
        rule(String.raw`^Test\s+(${words})\s+passed$`, "PASSED", keeps),
        rule(String.raw`^Test\s+(${words})\s+failed$`, "FAILED"),
        rule(String.raw`^Test\s+(${words})\s+skipped$`, "SKIPPED"),
      ],
    },
  ],
  [
    ["parse_log_cpp_v4"],
    "CTest",
    {
      rules: [
        rule(String.raw`^\d+/\d+\s+Test\s+#\d+:\s+(${words})\s+\.+\s+[Pp][Aa][Ss][Ss][Ee][Dd]\b`, "PASSED"),
        rule(
          String.raw`^\d+/\d+\s+Test\s+#\d+:\s+(${words})\s+\.+\s+(?:[Ff][Aa][Ii][Ll][Ee][Dd]|[Tt][Ii][Mm][Ee][Oo][Uu][Tt])\b`,
          "FAILED",
        ),
        rule(String.raw`^\d+/\d+\s+Test\s+#\d+:\s+(${words})\s+\.+\s+[Ss][Kk][Ii][Pp][Pp][Ee][Dd]\b`, "SKIPPED"),
      ],
    },
  ],
  [
    ["parse_log_ruby_v2"],
    "Minitest -v, names with #",
    {
      rules: [
        rule(
          String.raw`^(?<name>${words})\s+=\s+[\d.]+\s+s\s+=\s+(?<word>[.FES])$`,
          map([".", "PASSED"], ["F", "FAILED"], ["E", "FAILED"], ["S", "SKIPPED"]),
          { nameOf: (name) => (/.#./s.test(name) ? name : "") },
        ),
      ],
    },
  ],
  [
    ["parse_log_swift"],
    "XCTest on Linux",
    {
      rules: [
        rule(
          String.raw`^Test Case '(?<name>[^']+)'\s+(?<word>passed|failed)\s+\([0-9.]+\s+seconds\)$`,
          map(["passed", "PASSED"], ["failed", "FAILED"]),
        ),
      ],
    },
  ],
  [
    ["parse_log_csharp"],
    "xUnit.net",
    {
      clean: (line) => line.trimEnd(),
      rules: [
        rule(String.raw`^\[xUnit\.net\s+[\d:.]+\]\s+(${words})\s+\[FAIL\]$`, "FAILED"),
        rule(String.raw`^\s+Failed\s+(${words})\s+\[.{1,200}\]$`, "FAILED"),
        rule(String.raw`^\s+Skipped\s+(${words})(?:\s+\[.{1,200}\])?$`, "SKIPPED"),
        rule(String.raw`^\s+Passed\s+(${words})\s+\[.{1,200}\]$`, "PASSED", keeps),
      ],
    },
  ],
  [
    ["parse_log_scala"],
    "ScalaTest through sbt",
    {
      rules: [
        rule(String.raw`${info}\*\*\*\s+FAILED\s+\*\*\*\s+${bracket}$`, "FAILED"),
        rule(String.raw`${info}!!!\s+CANCELED\s+!!!\s+${bracket}$`, "SKIPPED"),
        rule(String.raw`${info}!!!\s+IGNORED\s+!!!`, "SKIPPED"),
        rule(`${info}${bracket}$`, "PASSED", keeps),
      ],
    },
  ],
  [
    ["parse_log_scala_v2"],
    "munit with colours",
    {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: a colour begins with one, and some logs lost it
      clean: (line) => line.trim().replace(/\x1b\[[0-9;]*m|\[[0-9]{1,2}m/g, ""),
      rules: [
        rule(String.raw`^\s*x\s+(${words})\s+[\d.]+[mμn]?s\s*$`, "FAILED"),
        rule(String.raw`^\s*\+\s+(${words})\s+[\d.]+[mμn]?s\s*$`, "PASSED"),
      ],
    },
  ],
  [
    ["parse_lue_nvim", "parse_lua_nvim", "parse_log_lua_nvim"],
    "plenary's busted in Neovim",
    {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: a colour begins with one
      clean: (line) => line.replace(/\x1b\[[0-9;]*m/g, "").trimEnd(),
      rules: [
        rule(String.raw`^Fail(?:ed)?\s*\|\|\s*(.+)$`, "FAILED", { nameOf: (name) => name.trim() }),
        rule(String.raw`^[Ss][Kk][Ii][Pp](?:[Pp][Ee][Dd])?\s*\|\|\s*(.+)$`, "SKIPPED", { ...keeps, nameOf: (name) => name.trim() }),
        rule(String.raw`^Success\s*\|\|\s*(.+)$`, "PASSED", { ...keeps, nameOf: (name) => name.trim() }),
      ],
    },
  ],
  [
    ["parse_log_ocaml"],
    "Alcotest",
    {
      clean: (line) => line.trimEnd(),
      rules: [
        ...(
          [
            ["OK|PASS", "PASSED"],
            ["FAIL|FAILED", "FAILED"],
            ["SKIP|SKIPPED|TODO", "SKIPPED"],
            ["[A-Z]+", "ERROR"],
          ] as const
        ).map(([tokens, status]) =>
          rule(String.raw`^\s*\[(?:${tokens})\]\s(?<name>\s*\S.*)$`, status, { keeps: status === "PASSED", nameOf: alcotest }),
        ),
      ],
    },
  ],
  [
    ["parse_log_dart_v3"],
    "dart test",
    {
      rules: [
        rule(String.raw`^\d+:\d+\s+\+\d+\s+-\d+:\s+loading\s+(/[^:]+\.dart)\s+\[E\]$`, "ERROR"),
        rule(String.raw`^\d+:\d+\s+\+\d+(?:\s+-\d+)?:\s+(/[^:]+\.dart:\s+.*\[E\].*)$`, "FAILED", { nameOf: dartName }),
        rule(String.raw`^\d+:\d+\s+\+\d+(?:\s+-\d+)?:\s+(/[^:]+\.dart:\s+.+)$`, "PASSED", { ...keeps, nameOf: dartName }),
      ],
    },
  ],
];

/** Reads `suite 3 name`. The first number between spaces divides suite and name. The suite may be missing. */
function alcotest(text: string): string {
  const [, suite, index, name = ""] = new RegExp(String.raw`^(${words})\s+(\d+)\s+(.+)$`, "s").exec(text.trimStart()) ?? [];
  if (suite !== undefined) return `${suite} ${index} ${name.trim()}`;
  const [, first, rest = ""] = /^\s+(\d+)\s+(.+)$/s.exec(text) ?? [];
  return first === undefined ? "" : `${first} ${rest.trim()}`;
}

/** Returns path and name, without the mark of a failure at the end. */
function dartName(text: string): string {
  const [, path, name = ""] = /^(\/[^:]+\.dart):\s+(.*)$/s.exec(text) ?? [];
  return `${path}: ${name.replace(/(?<!\s)\s+\[E\]$/, "").trim()}`;
}
