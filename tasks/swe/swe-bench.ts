/**
 * SWE-bench: full, Lite, Verified, Multilingual, and other sets with their columns. Each instance has an image, with the repository
 * at /testbed. Rows of swebench 5 say how they are tested (`image`, `eval_script`, `log_parser`). For older rows, and for
 * Multilingual's published rows, the tables of swebench 4 and of SWE-Gym say it.
 */
import { z } from "zod";
import { ImageName } from "../../base/schema/environment/image-name.ts";
import type { Task } from "../../base/schema/task.ts";
import { parseTask, taskError } from "../task-error.ts";
import { Common, Text } from "./columns.ts";
import { markedScript } from "./eval-script.ts";
import { type MultilingualTests, multilingualTestsOf } from "./multilingual-tests.ts";
import { activate, marked, type PublishedTask, publishedTask, quoted } from "./published-task.ts";
import { gymTestsOf, type RepoTests, testsOf } from "./swe-bench-repos.ts";
import type { SweSet } from "./swe-set.ts";
import { TestsApart } from "./tests-apart.ts";

const SweBenchRow = z.looseObject({
  ...Common,
  version: z.union([z.string(), z.number().transform(String)]).default(""),
  image: ImageName.optional(),
  eval_script: Text.optional(),
  log_parser: Text.optional(),
  alidade: TestsApart.nullish(),
  eval_type: z.literal("pass_and_fail", "is no way in which we count: pass_and_fail is wanted").optional(),
});
type SweBenchRow = z.infer<typeof SweBenchRow>;

export const sweBench: SweSet = {
  name: "swe-bench",
  title: "SWE-bench, Verified, Multilingual, SWE-Gym",
  columns: ["instance_id", "base_commit", "test_patch", "FAIL_TO_PASS"],
  toTask(value, { where }) {
    const row = parseTask(SweBenchRow, value, where);
    if (row.alidade) return runApart(row, row.alidade, where);
    return row.eval_script === undefined ? byTable(row, where) : byScript(row, row.eval_script, where);
  },
};

/** Docker Hub allows no two underscores in a row, so each set writes a word instead. */
export function imageOf(account: string, instance: string, underscores: string): string {
  return `${account}/sweb.eval.x86_64.${instance.replaceAll("__", underscores)}:latest`.toLowerCase();
}

function about(row: z.infer<z.ZodObject<typeof Common>>, where: string) {
  return {
    where,
    instance_id: row.instance_id,
    repo: row.repo,
    instruction: row.problem_statement,
    failToPass: row.FAIL_TO_PASS,
    passToPass: row.PASS_TO_PASS,
    gold: row.patch,
    labels: { base_commit: row.base_commit },
  };
}

/** The row's own script adds the tests by git, so the repository must be as in the image. */
function byScript(row: SweBenchRow, script: string, where: string): Task {
  if (row.log_parser === undefined)
    throw taskError(where, "log_parser", "is missing: a row with an eval_script names the parser of its log");
  return publishedTask({
    ...about(row, where),
    set: "swe-bench",
    image: row.image ?? imageOf("swebench", row.instance_id, "_1776_"),
    workdir: "/testbed",
    script: markedScript(script, where),
    parser: byInstance.has(row.log_parser) ? (instanceParser(row) ?? row.log_parser) : row.log_parser,
    parserColumn: "log_parser",
    testPatch: null,
    tests: testFiles(row.test_patch),
  });
}

/** These parsers of swebench choose another parser by the instance's number. Multilingual's table says which. */
const byInstance = new Set(["parse_log_jekyll", "parse_log_immutable_js"]);

function instanceParser({ repo, instance_id }: SweBenchRow): string | null {
  return multilingualTestsOf(repo, /\d+$/.exec(instance_id.slice(-12))?.[0] ?? "")?.parser ?? null;
}

/** Uses the column `alidade`: one of our runners runs the same tests, out of the work's reach. */
function runApart(row: SweBenchRow, apart: TestsApart, where: string): Task {
  return publishedTask({
    ...patched(row, where),
    set: "swe-bench",
    image: row.image ?? imageOf("swebench", row.instance_id, "_1776_"),
    workdir: "/testbed",
    script: { command: apart.test_cmd, files: apart.tests },
    parser: apart.log_parser,
    parserColumn: "alidade.log_parser",
  });
}

function byTable(row: SweBenchRow, where: string): Task {
  const other = multilingualTestsOf(row.repo, row.version);
  if (other !== null) return multilingual(row, other, where);
  const known = testsOf(row.repo, row.version);
  const gym = known ? null : gymTestsOf(row.repo);
  const tests = known ?? gym;
  if (tests === null)
    throw taskError(
      where,
      "repo",
      `is ${row.repo}, whose tests no table knows: give the row as swebench 5 has it, with image, eval_script and log_parser`,
    );
  return publishedTask({
    ...patched(row, where),
    set: gym ? "swe-gym" : "swe-bench",
    image: row.image ?? (gym ? imageOf("xingyaoww", row.instance_id, "_s_") : imageOf("swebench", row.instance_id, "_1776_")),
    workdir: "/testbed",
    script: marked([activate, tests.before, tests.build].filter((line) => line !== undefined).join("\n"), commandOf(row, tests)),
    parser: tests.parser,
    parserColumn: "repo",
  });
}

/** `set -x` prints the commands into the log, because the parser of Maven's log looks for them. */
function multilingual(row: SweBenchRow, { command, parser, build }: MultilingualTests, where: string): Task {
  return publishedTask({
    ...patched(row, where),
    set: "swe-bench",
    image: row.image ?? imageOf("swebench", row.instance_id, "_1776_"),
    workdir: "/testbed",
    script: marked(build, `set -x\n${command}`),
    parser,
    parserColumn: "repo",
  });
}

/** For rows whose test patch the grader applies to the test files of the base commit. */
export function patched(
  row: z.infer<z.ZodObject<typeof Common>>,
  where: string,
): Omit<PublishedTask, "set" | "image" | "workdir" | "script" | "parser" | "parserColumn"> {
  return { ...about(row, where), testPatch: row.test_patch, base: row.base_commit };
}

function commandOf({ repo, test_patch }: SweBenchRow, { command }: RepoTests): string {
  const files = testFiles(test_patch).filter((path) => !noTests.some((end) => path.endsWith(end)));
  const names = repo === "django/django" ? files.map(djangoLabel) : files;
  return [command, ...names.map(quoted)].join(" ");
}

/** Files with these endings are no tests, as in swebench. */
const noTests = [".json", ".png", "csv", ".txt", ".md", ".jpg", ".jpeg", ".pkl", ".yml", ".yaml", ".toml"];

/** Returns the files that git's headers name, deleted ones too: swebench runs all of them. */
function testFiles(patch: string): string[] {
  return Array.from(patch.matchAll(/^diff --git a\/.* b\/(.*)$/gm), ([, path]) => path as string);
}

function djangoLabel(path: string): string {
  return path
    .replace(/\.py$/, "")
    .replace(/^tests\//, "")
    .replaceAll("/", ".");
}
