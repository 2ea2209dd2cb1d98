/** The report parsers; a new one is a file here and a line below. */
import { junit } from "./junit.ts";
import type { ReportParser } from "./report-parser.ts";
import { nodeTest, tape } from "./sealed.ts";
import { tap } from "./tap.ts";

export const parsers = [tape, nodeTest, tap, junit] as const satisfies readonly ReportParser[];

/** The schema has checked the name, so it is in the list. */
export function parserNamed(name: ReportParser["name"]): ReportParser {
  return parsers.find((parser) => parser.name === name) as ReportParser;
}
