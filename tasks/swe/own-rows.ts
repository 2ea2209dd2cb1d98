/**
 * Loads rows like SWE-bench's with three columns of our own: `source` says where the tree comes from; `test_cmd` and `log_parser`
 * say how it is tested.
 *
 *     {"instance_id": "…", "repo": "o/r", "base_commit": "…", "problem_statement": "…", "FAIL_TO_PASS": […], "PASS_TO_PASS": […],
 *      "source": {"kind": "npm", "package": "qs", "base": {"version": …, "integrity": …}, "fixed": {…}, "tests": ["test/**"], …},
 *      "test_cmd": ["node", "{runner}", "test"], "log_parser": "tape"}
 *
 * An `npm` source names two published versions, which give the base, the tests and the gold patch. So such a row holds no code.
 * With a `folder` source, the row has `patch` and `test_patch`, as in SWE-bench.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { applyPatch } from "../../base/files/apply-patch.ts";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { hashTree, matchesAny, readFolder } from "../../base/files/file-tree.ts";
import { cached } from "../../base/host/cache-folder.ts";
import { hashOf } from "../../base/schema/ids.ts";
import { Environment, Limits, Task } from "../../base/schema/task.ts";
import { TestsSpec } from "../../graders/index.ts";
import { folderBelow } from "../host-path.ts";
import { loadEach } from "../load-each.ts";
import { withNode } from "../node-environment.ts";
import { installedPackages, lockedPackages, packageSource } from "../npm-source.ts";
import type { LocatedRow } from "../readers/read-rows.ts";
import { parseTask } from "../task-error.ts";
import type { LoadOptions } from "../task-format.ts";
import { Names, RequiredNames } from "./columns.ts";

const Published = z.strictObject({
  version: z.string().regex(/^\d+\.\d+\.\d+[\w.+-]*$/, "an exact version such as 1.2.3"),
  integrity: z.string().regex(/^sha512-[A-Za-z0-9+/]{86}==$/, "sha512-… of the tarball, as the registry prints it"),
});

const Common = {
  /** Globs of the test files. They come from the fixed version, and are never part of the gold patch. */
  tests: z.array(z.string()).min(1),
  /** Folder beside the row's file, with package.json and package-lock.json of what the tests require. */
  dependencies: z.string().nullable().default(null),
};

const Source = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("npm"),
    package: z.string().regex(/^(?:@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*$/, "a package name"),
    base: Published,
    fixed: Published,
    ...Common,
  }),
  z.strictObject({ kind: z.literal("folder"), path: z.string(), ...Common }),
]);
type Source = z.infer<typeof Source>;

const patchText = z.string().nullable().default(null);

/** Loose, because such rows have more columns (hints_text, created_at, version …). */
const SweRow = z.looseObject({
  instance_id: Task.shape.task_id,
  repo: z.string().min(1),
  base_commit: z.string().min(1),
  problem_statement: z.string().min(1),
  patch: patchText,
  test_patch: patchText,
  FAIL_TO_PASS: RequiredNames,
  PASS_TO_PASS: Names,
  source: Source,
  test_cmd: z.array(z.string()).min(1),
  log_parser: TestsSpec.shape.parser,
  work_runs: TestsSpec.shape.work_runs,
  limits: Limits.prefault({}),
});
type SweRow = z.infer<typeof SweRow>;

/** Packages that the tests require are mounted here. Node finds them through NODE_PATH. */
const dependenciesInside = "/deps";

/** Returns the tasks of the rows that can be loaded, by row. */
export async function loadOwnRows(rows: LocatedRow[], path: string, options: LoadOptions): Promise<Map<LocatedRow, Task>> {
  const read = await loadEach(
    rows,
    ({ where }) => where,
    async (one) => ({ one, row: parseTask(SweRow, one.value, one.where) }),
    options,
  );
  const tasks = new Map<LocatedRow, Task>();
  // Load rows one by one: they share a registry and a cache. Rows of one tree follow each other, so each tree is read once.
  const trees = Map.groupBy(read, ({ row: { source } }) => (source.kind === "npm" ? source.fixed.integrity : source.path));
  const reading = { ...options, read: rereading() };
  for (const { row, one } of [...trees.values()].flat()) {
    const [task] = await loadEach(
      [row],
      () => one.where,
      () => toTask(row, path, one.where, reading),
      options,
    );
    if (task) tasks.set(one, task);
  }
  return tasks;
}

/** Reads for one load. It keeps the last folder, so reading that again at once costs nothing. */
type RowReading = LoadOptions & { read: (folder: string) => Promise<TreeFile[]> };

function rereading(): RowReading["read"] {
  let last: { folder: string; files: Promise<TreeFile[]> } | null = null;
  return (folder) => {
    if (last?.folder !== folder) last = { folder, files: readFolder(folder) };
    return last.files;
  };
}

async function toTask(row: SweRow, path: string, where: string, options: RowReading): Promise<Task> {
  const trees = row.source.kind === "npm" ? await npmTrees(row.source, options) : await folderTrees(row.source, row, path, where, options);
  const environment = await environmentOf(row.source, trees.base, path, where, options);
  return {
    task_id: row.instance_id,
    instruction: row.problem_statement,
    environment,
    limits: row.limits,
    grader: {
      kind: "tests",
      command: row.test_cmd,
      parser: row.log_parser,
      tests: trees.tests,
      fail_to_pass: row.FAIL_TO_PASS,
      pass_to_pass: row.PASS_TO_PASS,
      ...(row.work_runs && { work_runs: row.work_runs }),
      // Node would load a dependency that an agent planted in the tree before the mounted one.
      protected: [...row.source.tests, "node_modules/**"],
    },
    gold_patch: row.source.kind === "npm" ? null : row.patch,
    gold_files: trees.gold,
    data_source: row.repo,
    labels: { base_commit: row.base_commit },
  };
}

/** Folders on the host. */
type Trees = { base: string; tests: string; gold: string | null };

async function npmTrees(source: Extract<Source, { kind: "npm" }>, options: RowReading): Promise<Trees> {
  if (options.static) return { base: await keep([]), tests: await keep([]), gold: await keep([]) };
  const base = await packageSource(source.package, source.base.version, source.base.integrity, options);
  const fixed = await options.read(await packageSource(source.package, source.fixed.version, source.fixed.integrity, options));
  const isTest = (file: TreeFile) => matchesAny(file.path, source.tests);
  return { base, tests: await keep(fixed.filter(isTest)), gold: await keep(fixed.filter((file) => !isTest(file))) };
}

async function folderTrees(
  source: Extract<Source, { kind: "folder" }>,
  row: SweRow,
  path: string,
  where: string,
  { read }: RowReading,
): Promise<Trees> {
  const base = await folderBelow(dirname(path), source.path, where, "source.path");
  const files = await read(base);
  const tested = row.test_patch === null ? files : applyPatch(files, row.test_patch);
  return { base, tests: await keep(tested.filter((file) => matchesAny(file.path, source.tests))), gold: null };
}

/** Keeps a tree as a folder of the cache, named by its hash. */
function keep(files: TreeFile[]): Promise<string> {
  return cached(`trees/${hashOf(hashTree(files)).slice(0, 32)}`, async (folder) => {
    for (const file of files) {
      await mkdir(dirname(join(folder, file.path)), { recursive: true });
      await writeFile(join(folder, file.path), file.content, { mode: file.mode });
    }
  });
}

async function environmentOf(source: Source, base: string, path: string, where: string, options: LoadOptions): Promise<Environment> {
  const environment = Environment.parse({ files: base });
  if (source.dependencies === null) return withNode(environment);
  const manifest = await folderBelow(dirname(path), source.dependencies, where, "source.dependencies");
  return withNode({
    ...environment,
    mounts: {
      [dependenciesInside]: options.static ? await keep(await lockedPackages(manifest)) : await installedPackages(manifest, options),
    },
    env: { NODE_PATH: `${dependenciesInside}/node_modules` },
  });
}
