export { canRunApart, parserNamed, parserOf, parsers } from "./registry.ts";
export type { ReportParser } from "./report-parser.ts";
export { marks } from "./swe/status-log.ts";
