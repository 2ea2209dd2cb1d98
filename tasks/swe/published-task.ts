/** What a published row says, as a task: the image holds the repository, the row what is tested and how. */

import { matchesAny } from "../../base/files/file-tree.ts";
import { patchedPaths } from "../../base/files/parse-patch.ts";
import { Task } from "../../base/schema/task.ts";
import { parserNamed, parsers } from "../../graders/parsers/index.ts";
import { marks } from "../../graders/parsers/swe/status-log.ts";
import { TestsSpec } from "../../graders/tests.ts";
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
  /** Shell lines, run before an agent and before a grading. */
  setup?: string;
  /** Shell lines, run before an agent only: what it may not see beside the repository's history. */
  conceal?: string;
  /** The whole script of bash that runs the tests and prints the marks (`marked`), or a command with one of our runners. */
  script: string | ApartRun;
  /** Name of the log's parser, and the row's column that says it. */
  parser: string;
  parserColumn: string;
  /** The test files are put back to this commit: some images have the tests of the fix already. */
  base?: string;
  /** Applied for grading. null: the script does it, or the tests lie in the image. */
  testPatch: string | null;
  /** Paths of tests that lie in the image or that the script puts there: the work's own are left out. */
  tests?: string[];
  failToPass: string[];
  passToPass: string[];
  gold: string | null;
  labels: Record<string, string>;
};

/** Tests that a runner of ours runs apart from the work. */
export type ApartRun = {
  command: string[];
  /** Globs of the image's files that belong to the tests. */
  files: string[];
};

/** Limits that the sets' own harness has, or that their repositories need; the others are ours. */
const limits = { grade_seconds: 1_800, memory_mb: 4_096, disk_mb: 4_096, pids: 1_024, output_bytes: 64_000_000 };

/** Throws `task_invalid` for an unknown parser, for a patch that is none, and for an instance whose name gives no name of an image. */
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
      // The images are root's: their tests write beside the repository, and their tools below /root.
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

/** An argument may have 128 KiB, and test patches stand in some scripts: a longer one goes in several. */
const longestArgument = 30_000;

export function shell(program: "sh" | "bash", script: string): string[] {
  if (script.length <= longestArgument) return [program, "-c", script];
  const parts = Array.from({ length: Math.ceil(script.length / longestArgument) }, (_, at) =>
    script.slice(at * longestArgument, (at + 1) * longestArgument),
  );
  return [program, "-c", `script=$(printf %s "$@"); set --; eval "$script"`, program, ...parts];
}

/** The test command between the marks that the sets' parsers look for, and how it ended. */
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

/** Conda's environment `testbed`, where the image has one. */
export const activate = `if [ -f /opt/miniconda3/bin/activate ]; then . /opt/miniconda3/bin/activate && conda activate testbed; fi`;

/** A word of a shell's command. */
export function quoted(word: string): string {
  return /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** An image without the commit keeps its test files as they are. */
function revertTests(base: string, paths: string[]): string {
  const files = paths.map(quoted).join(" ");
  return `if git -c safe.directory="*" cat-file -e ${base}^{commit} 2>/dev/null; then
  git config --global --add safe.directory "$PWD"
  for file in ${files}; do
    if git cat-file -e "${base}:$file" 2>/dev/null; then git checkout -q ${base} -- "$file"; else rm -f -- "$file"; fi
  done
fi`;
}
