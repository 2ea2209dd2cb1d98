/**
 * SWE-smith's rows of Python. The image has the repository without the bug, and `patch` adds the bug. So the reverse patch is the
 * known solution. The tests that the bug breaks lie in the repository; the agent does not see their files.
 */
import { z } from "zod";
import { reversePatch } from "../../base/files/reverse-patch.ts";
import { ImageName } from "../../base/schema/environment/image-name.ts";
import { parseTask, taskError } from "../task-error.ts";
import { Names, RequiredNames, Text } from "./columns.ts";
import { activate, marked, publishedTask, quoted } from "./published-task.ts";
import type { SweSet } from "./swe-set.ts";

const SmithRow = z.looseObject({
  instance_id: Text,
  repo: z.string().regex(/^[\w.-]+\/[\w.-]+$/, "is no repository: swesmith/owner__name.commit is wanted"),
  patch: Text,
  problem_statement: Text,
  image_name: ImageName,
  FAIL_TO_PASS: RequiredNames,
  PASS_TO_PASS: Names,
});

const pytest = "pytest --disable-warnings --color=no --tb=no --verbose";
/** Repositories whose profile has another command (swesmith 0.0.9). */
const commands = new Map([
  ["tkrajina__gpxpy", "pytest test.py --verbose --color=no --tb=no --disable-warnings"],
  ["mido__mido", `${pytest} -rs -c /dev/null`],
  ["paramiko__paramiko", "pytest -rA --color=no --disable-warnings"],
  ["pydantic__pydantic", `/root/.local/bin/uv run ${pytest}`],
]);
const parsers = new Map([["paramiko__paramiko", "parse_log_pytest"]]);
/** Repositories whose profiles read another log. */
const others = new Set(["HIPS__autograd", "un33k__python-slugify", "tornadoweb__tornado", "python__mypy"]);

export const sweSmith: SweSet = {
  name: "swe-smith",
  title: "SWE-smith",
  columns: ["instance_id", "image_name", "patch", "FAIL_TO_PASS", "PASS_TO_PASS"],
  toTask(value, { where }) {
    const row = parseTask(SmithRow, value, where);
    // swesmith/owner__name.commit
    const repo = (row.repo.split("/")[1] as string).replace(/\.[0-9a-f]{8}$/, "");
    const files = [...new Set(row.FAIL_TO_PASS.map((name) => name.split("::")[0] as string))];
    if (others.has(repo) || !files.every((path) => path.endsWith(".py")))
      throw taskError(where, "repo", `is ${row.repo}, whose tests are not pytest's: only SWE-smith's rows of Python and pytest are loaded`);
    return publishedTask({
      where,
      set: "swe-smith",
      instance_id: row.instance_id,
      repo: repo.replace("__", "/"),
      instruction: row.problem_statement,
      image: imageOf(row.image_name),
      workdir: "/testbed",
      setup: `git config --global --add safe.directory "$PWD"\ngit apply - <<'THE_END_OF_THE_BUG'\n${row.patch.replace(/\n?$/, "\n")}THE_END_OF_THE_BUG`,
      conceal: `rm -f -- ${files.map(quoted).join(" ")}`,
      script: marked(activate, commands.get(repo) ?? pytest),
      parser: parsers.get(repo) ?? "swesmith_pytest",
      parserColumn: "repo",
      testPatch: null,
      tests: files,
      failToPass: row.FAIL_TO_PASS,
      passToPass: row.PASS_TO_PASS,
      gold: reversed(row.patch, where),
      labels: {},
    });
  },
};

/** Early rows leave out the account, and write two underscores where an image's name has `_1776_`. */
function imageOf(name: string): string {
  return name.includes("/") ? name : `jyangballin/${name.replaceAll("__", "_1776_")}`;
}

function reversed(patch: string, where: string): string {
  try {
    return reversePatch(patch);
  } catch (error) {
    throw taskError(where, "patch", (error as Error).message);
  }
}
