/** Makes a task of what a published row says. The image holds the repository; the row says what is tested and how. */

import { matchesAny } from "../../base/files/file-tree.ts";
import { patchedPaths } from "../../base/files/parse-patch.ts";
import { Task } from "../../base/schema/task.ts";
import { TestsSpec } from "../../graders/index.ts";
import { marks, parserNamed, parsers } from "../../graders/parsers/index.ts";
import { parseTask, taskError } from "../task-error.ts";
import { taskIdOf } from "./columns.ts";
import { oneCommit } from "./one-commit.ts";

export type PublishedTask = {
  /** File and row, for errors. */
  where: string;
  set: string;
  instance_id: string;
  repo: string;
  instruction: string;
  image: string;
  workdir: string;
  env?: Record<string, string>;
  /** Shell lines that run before an agent, and before a grading. */
  setup?: string;
  /** Shell lines that run before an agent only. They remove what it may not see, except history, which is always removed. */
  conceal?: string;
  /** A whole bash script that runs the tests and prints the marks (`marked`), or a command with one of our runners. */
  script: string | ApartRun;
  /** Name of the log's parser. */
  parser: string;
  /** The column that names it, for errors. */
  parserColumn: string;
  /** The commit whose test files the agent sees. Some images already have the tests of the fix. */
  base?: string;
  /** The patch that grading applies. null: the script does it, or the tests lie in the image. */
  testPatch: string | null;
  /** Paths of tests in the image, and of those that the script puts there. The work's own files of these names do not count. */
  tests?: string[];
  failToPass: string[];
  passToPass: string[];
  gold: string | null;
  labels: Record<string, string>;
};

/** Tests that one of our runners runs apart from the work. */
export type ApartRun = {
  command: string[];
  /** Globs of the image's files that belong to the tests. */
  files: string[];
};

/** Limits of the sets' own harness, or what their repositories need. The other limits are our defaults. */
const limits = { grade_seconds: 1_800, memory_mb: 4_096, disk_mb: 4_096, pids: 1_024, output_bytes: 64_000_000 };

/** Throws `task_invalid` for an unknown parser, for text that is no patch, and if the instance's name makes no valid image name. */
export function publishedTask(row: PublishedTask): Task {
  const parser = parserOf(row);
  const testPaths = [...(row.testPatch === null ? [] : pathsOf(row.testPatch, "test_patch", row.where)), ...(row.tests ?? [])];
  const goldPaths = row.gold === null ? [] : pathsOf(row.gold, "patch", row.where);
  const setup = [row.setup, row.base && row.testPatch && revertTests(row.base, testPaths)].filter((part) => part).join("\n");
  const steering = [...(parser.steeredBy ?? [])].filter((glob) => !goldPaths.some((path) => matchesAny(path, [glob])));
  const task = {
    task_id: taskIdOf(row.instance_id),
    instruction: row.instruction,
    environment: {
      image: row.image,
      platform: "linux/amd64",
      workdir: row.workdir,
      // The images expect root: their tests write beside the repository, and their tools below /root.
      user: "root",
      writable: "root",
      env: row.env ?? {},
      setup: setup === "" ? null : { command: shell("sh", setup) },
      conceal: shell("sh", [row.conceal, oneCommit].filter((part) => part !== undefined).join("\n")),
    },
    limits,
    grader: TestsSpec.parse({
      kind: "tests",
      ...(typeof row.script === "string"
        ? { command: shell("bash", row.script), work_runs: "together" }
        : { command: row.script.command, test_files: row.script.files, work_runs: "apart" }),
      parser: row.parser,
      ...(row.testPatch !== null && { test_patch: row.testPatch }),
      fail_to_pass: row.failToPass,
      pass_to_pass: row.passToPass,
      protected: [".git/**", ...testPaths, ...(typeof row.script === "string" ? [] : row.script.files), ...steering],
    }),
    gold_patch: row.gold,
    data_source: `${row.set}/${row.repo}`,
    labels: { ...row.labels, set: row.set, repo: row.repo, instance_id: row.instance_id },
  };
  return parseTask(Task, task, row.where);
}

function parserOf({ parser, parserColumn, where }: PublishedTask) {
  if (parsers.some(({ name }) => name === parser)) return parserNamed(parser);
  throw taskError(where, parserColumn, `is ${JSON.stringify(parser)}, and there is no log parser of that name: docs/tasks.md lists them`);
}

function pathsOf(patch: string, column: string, where: string): string[] {
  try {
    return patchedPaths(patch);
  } catch (error) {
    throw taskError(where, column, (error as Error).message);
  }
}

/** An argument may have 128 KiB. Some scripts hold test patches, so a longer script is passed in several arguments. */
const longestArgument = 30_000;

export function shell(program: "sh" | "bash", script: string): string[] {
  if (script.length <= longestArgument) return [program, "-c", script];
  const parts = Array.from({ length: Math.ceil(script.length / longestArgument) }, (_, at) =>
    script.slice(at * longestArgument, (at + 1) * longestArgument),
  );
  return [program, "-c", `script=$(printf %s "$@"); set --; eval "$script"`, program, ...parts];
}

/** Returns a script that prints the marks around the test command, and then how it ended. */
export function marked(before: string, command: string): string {
  return `exec 2>&1
${before}
echo; echo '${marks.start}'
{ ${command}
}
code=$?
echo; echo '${marks.end}'
echo "${marks.exit}: $code"
`;
}

/** Activates conda's environment `testbed`, if the image has conda. */
export const activate = `if [ -f /opt/miniconda3/bin/activate ]; then . /opt/miniconda3/bin/activate && conda activate testbed; fi`;

/** Quotes a word for a shell's command, if it needs quotes. */
export function quoted(word: string): string {
  return /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Puts test files back to `base`. An image without that commit keeps its test files. */
function revertTests(base: string, paths: string[]): string {
  const files = paths.map(quoted).join(" ");
  return `if git -c safe.directory="*" cat-file -e ${base}^{commit} 2>/dev/null; then
  git config --global --add safe.directory "$PWD"
  for file in ${files}; do
    if git cat-file -e "${base}:$file" 2>/dev/null; then git checkout -q ${base} -- "$file"; else rm -f -- "$file"; fi
  done
fi`;
}
