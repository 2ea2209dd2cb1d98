/**
 * What the parsers of printed logs share. The work can print into such a log. A parser therefore holds what is listed
 * against the log's own counts, takes a test with two outcomes for failed, and calls a log with two summaries incomplete.
 * A work that prints a whole log of its own and ends the process is not noticed: the sealed parsers are for that.
 */
import { stripVTControlCharacters } from "node:util";
import type { ReportParser } from "./report-parser.ts";
import { TestList } from "./test-list.ts";

type LogParser = Pick<ReportParser, "name" | "title" | "steeredBy" | "modules"> & {
  /** How this framework writes names; `normalName` where left out. */
  nameOf?: (name: string) => string;
  /** Adds what the lines tell, without colours. */
  read(lines: string[], list: TestList): void;
};

export function logParser({ nameOf = normalName, read, ...about }: LogParser): ReportParser {
  return {
    ...about,
    runner: null,
    source: "output",
    sealed: false,
    nameOf,
    parse(text) {
      const list = new TestList();
      read(text.split("\n").map(plain), list);
      return list.report();
    },
  };
}

/** Longer lines name no test: the time of a regular expression on one must stay small. */
const longestLine = 4_096;

function plain(line: string): string {
  return line.length > longestLine ? "" : stripVTControlCharacters(line).replace(/\r$/, "");
}

/** A name without what changes from run to run: a duration behind it, Python's addresses and temporary folders. */
export function normalName(name: string): string {
  return name
    .replace(/ [([]\d[\d.]{0,12} ?(?:ms|s|sec|µs)[)\]]$/, "")
    .replace(/ at 0x[0-9a-f]{4,16}>/g, " at 0x>")
    .replace(/\/tmp\/pytest-of-\w{1,64}\/pytest-\d{1,9}\//g, "/tmp/pytest/")
    .replace(/\/tmp\/tmp[a-z0-9_]{8}\b/g, "/tmp/tmp");
}
