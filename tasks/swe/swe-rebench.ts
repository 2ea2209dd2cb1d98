/**
 * SWE-rebench and SWE-rebench-V2: `install_config` says how the tests are run and read. The first one's images are built as
 * SWE-bench's (conda, /testbed); those of V2 have the repository at /<its name>.
 */
import { z } from "zod";
import { ImageName } from "../../schema/environment/image-name.ts";
import { parseTask } from "../task-error.ts";
import { Common, Names, Text } from "./columns.ts";
import { activate, marked, publishedTask } from "./published-task.ts";
import { firstRebenchRecipe, secondRebenchRecipe } from "./recipes/rebench-recipe.ts";
import { imageOf, patched } from "./swe-bench.ts";
import type { SweSet } from "./swe-set.ts";

const Commands = z.preprocess((value) => (typeof value === "string" && !/^\s*\[/.test(value) ? [value] : value), Names);

const RebenchRow = z.looseObject({
  ...Common,
  image_name: ImageName.nullish(),
  docker_image: ImageName.nullish(),
  install_config: z.looseObject({ test_cmd: Commands.pipe(z.array(z.string()).min(1, "names no command")), log_parser: Text }),
});

export const sweRebench: SweSet = {
  name: "swe-rebench",
  title: "SWE-rebench, SWE-rebench-V2",
  columns: ["instance_id", "install_config", "test_patch"],
  toTask(value, { where }) {
    const row = parseTask(RebenchRow, value, where);
    const isFirst = row.image_name == null;
    const { test_cmd, log_parser } = row.install_config;
    const folder = row.repo.split("/")[1] as string;
    // The first one's commands end before the test files, which the set's fork of swebench appends.
    const files = isFirst ? filesOf(row.test_patch) : [];
    const tests = publishedTask({
      ...patched(row, where),
      set: isFirst ? "swe-rebench" : "swe-rebench-v2",
      image: row.image_name ?? row.docker_image ?? imageOf("swerebench", row.instance_id, "_1776_"),
      workdir: isFirst ? "/testbed" : `/${folder}`,
      script: marked(isFirst ? activate : "", [...test_cmd.slice(0, -1), [test_cmd.at(-1), ...files].join(" ")].join("\n")),
      parser: log_parser,
      parserColumn: "install_config.log_parser",
    });
    return tests;
  },
  recipe: (row, where) => (row.image_name == null ? firstRebenchRecipe(row, where) : secondRebenchRecipe(row, where)),
};

function filesOf(patch: string): string[] {
  return Array.from(patch.matchAll(/^diff --git a\/.* b\/([\w./@+-]+\.py)$/gm), ([, path]) => path as string);
}
