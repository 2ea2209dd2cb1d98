/**
 * SWE-rebench and SWE-rebench-V2. `install_config` says how the tests are run and read.
 *
 * - SWE-rebench's images are like SWE-bench's (conda, /testbed). A fork of swebench 4.1 reads its logs (SWE-bench-fork at commit
 *   39316f79).
 * - V2's images have the repository at /<its name>. V2 has parsers and commands of its own (scripts/eval.py at commit c71902a8).
 */
import { z } from "zod";
import { ImageName } from "../../base/schema/environment/image-name.ts";
import { parsers } from "../../graders/parsers/index.ts";
import { parseTask, taskError } from "../task-error.ts";
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
    // SWE-rebench's commands lack the test files; its fork of swebench adds them at the end.
    const files = isFirst ? filesOf(row.test_patch) : [];
    return publishedTask({
      ...patched(row, where),
      set: isFirst ? "swe-rebench" : "swe-rebench-v2",
      image: row.image_name ?? row.docker_image ?? imageOf("swerebench", row.instance_id, "_1776_"),
      workdir: isFirst ? "/testbed" : `/${folder}`,
      script: isFirst ? marked(activate, [...test_cmd.slice(0, -1), [test_cmd.at(-1), ...files].join(" ")].join("\n")) : apart(test_cmd),
      parser: isFirst ? firstParser(log_parser) : secondParser(log_parser, where),
      parserColumn: "install_config.log_parser",
    });
  },
  recipe: (row, where) => (row.image_name == null ? firstRebenchRecipe(row, where) : secondRebenchRecipe(row, where)),
};

/** One of the fork's parsers differs from swebench 5's parser of the same name. */
function firstParser(name: string): string {
  return name === "parse_log_pytest_v2" ? `swebench_4.${name}` : name;
}

function secondParser(name: string, where: string): string {
  const ours = `rebench_v2.${name}`;
  if (parsers.some((parser) => parser.name === ours)) return ours;
  throw taskError(
    where,
    "install_config.log_parser",
    `is ${JSON.stringify(name)}, and there is no reader here for SWE-rebench-V2's parser of that name`,
  );
}

/** V2 stops at the first command that fails. Its log has all of stdout first, then all of stderr. */
function apart(commands: string[]): string {
  return marked(
    "alidade_errors=$(mktemp)",
    `(\nset -e\n${commands.join("\n")}\n) 2> "$alidade_errors"\nalidade_ended=$?\ncat "$alidade_errors"\n(exit $alidade_ended)`,
  );
}

function filesOf(patch: string): string[] {
  return Array.from(patch.matchAll(/^diff --git a\/.* b\/([\w./@+-]+\.py)$/gm), ([, path]) => path as string);
}
