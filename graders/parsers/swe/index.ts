/** Lists the log parsers of the SWE sets, by the names that rows give them. */
import type { ReportParser } from "../report-parser.ts";
import { blockParsers } from "./block-parsers.ts";
import { django } from "./django.ts";
import { lineParsers } from "./line-parsers.ts";
import { multiSweParsers } from "./multi-swe/index.ts";
import { swePytest } from "./pytest.ts";
import { rebenchParsers } from "./rebench-v2/index.ts";

export const sweParsers: readonly ReportParser[] = [
  ...swePytest,
  django,
  ...lineParsers,
  ...blockParsers,
  ...multiSweParsers,
  ...rebenchParsers,
];
