/**
 * The column `alidade` of a row. It says how one of our runners runs the row's tests, with the work in a process of its own. Other
 * readers of the row ignore it, and run its `eval_script`.
 *
 *     "alidade": {"test_cmd": ["python3", "{runner}", "tests/test_slug.py"], "log_parser": "pytest", "tests": ["tests/**"]}
 */
import { z } from "zod";
import { parsers } from "../../graders/parsers/index.ts";
import { fromJsonText } from "./columns.ts";

const names = parsers.filter((parser) => (parser.sealedForm ?? parser).apart === true).map(({ name }) => name);

export const TestsApart = fromJsonText(
  z.strictObject({
    test_cmd: z.array(z.string()).refine((words) => words.includes("{runner}"), 'has no word "{runner}", which stands for our runner'),
    log_parser: z.enum(names, { error: ({ input }) => `is ${JSON.stringify(input)}: tests run apart with ${names.join(", ")}` }),
    /** Globs of the image's files that belong to the tests, such as their helpers. */
    tests: z.array(z.string()).min(1, "names no file: the globs of the tests and of what they load are wanted"),
  }),
  "object",
);
export type TestsApart = z.infer<typeof TestsApart>;
