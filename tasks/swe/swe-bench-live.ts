/** SWE-bench-Live. Rows name their test commands, which run all tests of the repository. The images have no conda. */
import { z } from "zod";
import { ImageName } from "../../base/schema/environment/image-name.ts";
import { parseTask } from "../task-error.ts";
import { Common, Names, Text } from "./columns.ts";
import { marked, publishedTask } from "./published-task.ts";
import { imageOf, patched } from "./swe-bench.ts";
import type { SweSet } from "./swe-set.ts";

const LiveRow = z.looseObject({
  ...Common,
  test_cmds: Names.pipe(z.array(z.string()).min(1, "names no command")),
  log_parser: Text,
  image: ImageName.optional(),
});

/** The set's short names for swebench's parsers. */
const parserNames = new Map([["pytest", "parse_log_pytest"]]);

export const sweBenchLive: SweSet = {
  name: "swe-bench-live",
  title: "SWE-bench-Live",
  columns: ["instance_id", "test_cmds", "log_parser", "test_patch"],
  toTask(value, { where }) {
    const row = parseTask(LiveRow, value, where);
    return publishedTask({
      ...patched(row, where),
      set: "swe-bench-live",
      image: row.image ?? imageOf("starryzhang", row.instance_id, "_1776_"),
      workdir: "/testbed",
      script: marked("", row.test_cmds.join("\n")),
      parser: parserNames.get(row.log_parser) ?? row.log_parser,
      parserColumn: "log_parser",
    });
  },
};
