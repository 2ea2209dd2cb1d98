/** Writes a task into a folder as people write them: task.yaml, files/ and tests/. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { stringify } from "yaml";
import { matchesAny } from "../../base/files/file-tree.ts";
import { patchedPaths } from "../../base/files/parse-patch.ts";
import { Environment } from "../../base/schema/task.ts";
import type { ReportParser } from "../../graders/parsers/index.ts";
import { canRunApart, parserOf } from "../../graders/parsers/index.ts";
import { nodeInside } from "../../sandboxes/index.ts";
import { nodeWord } from "../node-environment.ts";
import type { Fix } from "./fix.ts";
import { instructionOf, leaksOf } from "./instruction.ts";
import { NoTask } from "./no-task.ts";
import { testCommand } from "./test-command.ts";
import { writeTree } from "./write-tree.ts";

export type HowTested = {
  /** A line for sh, run in the work. */
  test: string;
  parser: ReportParser["name"];
  /** null: Alidade's own base image. */
  image: string | null;
  /** Globs of test files. */
  tests: readonly string[];
  test_seconds: number;
  memory_mb: number;
};

export type RequiredTests = { fail_to_pass: string[]; pass_to_pass: string[] };

/**
 * The agent finds one commit without a past. An image without git has no use of it. What the image itself put there and the
 * project ignores, such as node_modules, stays out of it.
 */
const oneCommit = `if command -v git >/dev/null; then
  git init -q . && git add -A . && git -c user.name=task -c user.email=task@localhost commit -q --allow-empty -m 'The task'
fi`;

/** Where a task's files are put that says nothing else. */
const { workdir } = Environment.parse({});

/** The folder must be empty. */
export async function writeTrees(folder: string, { base, tests }: Fix): Promise<void> {
  await writeTree(join(folder, "files"), base);
  await writeTree(join(folder, "tests"), tests);
}

/** `required`: empty lists while they are being found. `apart`: a runner's command, where the tests run apart from the work. */
export async function writeTaskFile(folder: string, fix: Fix, how: HowTested, required: RequiredTests, apart?: string[]): Promise<void> {
  await writeFile(join(folder, "task.yaml"), stringify(documentOf(fix, how, required, apart), { lineWidth: 0 }));
}

function documentOf(fix: Fix, how: HowTested, required: RequiredTests, apart?: string[]): object {
  const instruction = fix.instruction ?? instructionOf(fix.message, leaksOf(fix.tests, required.fail_to_pass));
  if (instruction === null) throw new NoTask("no_message", "each line that is left names the hidden tests");
  const command = apart ?? testCommand(how.test);
  const parser = parserOf({ parser: how.parser, command });
  // Node.js for our runners that are written for it; images have a Python of their own.
  const needsNode = parser.runner !== null && parser.language !== "python";
  return {
    task_id: fix.task_id,
    instruction,
    environment: {
      ...(how.image !== null && { image: how.image }),
      files: "files",
      ...(needsNode && { mounts: { [nodeInside]: nodeWord } }),
      ...(apart && fix.base.some(({ path }) => path.startsWith("src/")) && { env: { PYTHONPATH: `${workdir}/src` } }),
      conceal: ["sh", "-c", oneCommit],
    },
    limits: { grade_seconds: how.test_seconds, memory_mb: how.memory_mb },
    grader: {
      kind: "tests",
      parser: how.parser,
      command,
      tests: "tests",
      ...(canRunApart({ parser: how.parser, command }) && { work_runs: apart ? "apart" : "together" }),
      // The tests see no file but these: their helpers are among the project's own test files.
      ...(apart && { test_files: [...how.tests] }),
      ...(fix.removed_tests !== "" && { test_patch: fix.removed_tests }),
      ...required,
      protected: [...how.tests, ...steering(parser, fix.gold)],
    },
    gold_patch: fix.gold,
    data_source: fix.data_source,
    labels: fix.labels,
  };
}

/** Files that steer the framework stay as they were delivered, but for those that the change itself is in. */
function steering({ steeredBy = [] }: ReportParser, gold: string): string[] {
  const changed = patchedPaths(gold);
  return steeredBy.filter((glob) => !changed.some((path) => matchesAny(path, [glob])));
}
