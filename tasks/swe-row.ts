/**
 * SWE-bench-like rows, one a line (.jsonl) or as a list (.json), with three fields of ours: `source` says where the
 * tree comes from, `test_cmd` and `log_parser` how it is tested.
 *
 *     {"instance_id": "…", "repo": "o/r", "base_commit": "…", "problem_statement": "…", "FAIL_TO_PASS": […], "PASS_TO_PASS": […],
 *      "source": {"kind": "npm", "package": "qs", "base": {"version": …, "integrity": …}, "fixed": {…}, "tests": ["test/**"], …},
 *      "test_cmd": ["node", "{runner}", "test"], "log_parser": "tape"}
 *
 * With an `npm` source base, tests and gold are two published versions, so the row holds no code. With a `folder`
 * source `patch` and `test_patch` are the diffs of the row, as in SWE-bench.
 */
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { messageOf } from "../errors.ts";
import { applyPatch } from "../files/apply-patch.ts";
import type { TreeFile } from "../files/file-tree.ts";
import { hashTree, matchesAny, readFolder } from "../files/file-tree.ts";
import { TestsSpec } from "../graders/tests.ts";
import { cached } from "../host/cache-folder.ts";
import { hashOf } from "../schema/ids.ts";
import { readJson } from "../schema/read-json.ts";
import { Environment, Limits, Task } from "../schema/task.ts";
import { folderBelow } from "./host-path.ts";
import { loadEach } from "./load-each.ts";
import { withNode } from "./node-environment.ts";
import { installedPackages, packageSource } from "./npm-source.ts";
import { parseTask, taskError } from "./task-error.ts";
import type { LoadOptions, TaskFormat } from "./task-format.ts";

/** Lists are JSON text in many dumps. */
const Names = z.preprocess(
  (value, context) => {
    if (typeof value !== "string") return value;
    try {
      return readJson(value);
    } catch {
      context.addIssue({ code: "custom", message: "is text, but not a JSON list" });
      return z.NEVER;
    }
  },
  z.array(z.string().min(1)),
);

const Published = z.strictObject({
  version: z.string().regex(/^\d+\.\d+\.\d+[\w.+-]*$/, "an exact version such as 1.2.3"),
  integrity: z.string().regex(/^sha512-[A-Za-z0-9+/]{86}==$/, "sha512-… of the tarball, as the registry prints it"),
});

const Common = {
  /** Globs of the test files: taken from the fixed version, and never part of the gold change. */
  tests: z.array(z.string()).min(1),
  /** Folder with package.json and package-lock.json of what the tests require, beside the row's file. */
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

/** Loose, for the sets that exist carry more columns (hints_text, created_at, version …). */
const SweRow = z.looseObject({
  instance_id: Task.shape.task_id,
  repo: z.string().min(1),
  base_commit: z.string().min(1),
  problem_statement: z.string().min(1),
  patch: patchText,
  test_patch: patchText,
  FAIL_TO_PASS: Names.pipe(z.array(z.string()).min(1, "names no test: a task without one cannot be failed")),
  PASS_TO_PASS: Names,
  source: Source,
  test_cmd: z.array(z.string()).min(1),
  log_parser: TestsSpec.shape.parser,
  limits: Limits.prefault({}),
});
type SweRow = z.infer<typeof SweRow>;

/** Where what the tests require is mounted; Node looks there through NODE_PATH. */
const dependenciesInside = "/deps";

export const sweRow: TaskFormat = {
  name: "swe-row",
  title: "SWE-bench-like rows: .jsonl, or a list in .json",

  async matches(path) {
    const found = await stat(path).catch(() => null);
    if (!found?.isFile()) return false;
    return path.endsWith(".jsonl") || (path.endsWith(".json") && /^\s*\[/.test(await readFile(path, "utf8")));
  },

  async load(path, options) {
    const rows = (await readRows(path, options)).filter(({ row }) => options.only?.has(row.instance_id) ?? true);
    const tasks = new Map<SweRow, Task>();
    // One after the other, for they share a registry and a cache; and those of one tree together, so that it is read once.
    const trees = Map.groupBy(rows, ({ row: { source } }) => (source.kind === "npm" ? source.fixed.integrity : source.path));
    const reading = { ...options, read: rereading() };
    for (const { row, where } of [...trees.values()].flat()) {
      const [task] = await loadEach([row], () => toTask(row, path, where, reading), options);
      if (task) tasks.set(row, task);
    }
    return rows.flatMap(({ row }) => tasks.get(row) ?? []);
  },
};

/** How a load reads: the last folder is kept, so that reading it again at once costs nothing. */
type RowReading = LoadOptions & { read: (folder: string) => Promise<TreeFile[]> };

function rereading(): RowReading["read"] {
  let last: { folder: string; files: Promise<TreeFile[]> } | null = null;
  return (folder) => {
    if (last?.folder !== folder) last = { folder, files: readFolder(folder) };
    return last.files;
  };
}

async function readRows(path: string, options: LoadOptions): Promise<{ row: SweRow; where: string }[]> {
  const text = await readFile(path, "utf8");
  const values = path.endsWith(".jsonl") ? await linesOf(text, path, options) : listOf(text, path);
  return loadEach(values, async ({ value, where }) => ({ row: parseTask(SweRow, value, where), where }), options);
}

type LocatedValue = { value: unknown; where: string };

function linesOf(text: string, path: string, options: LoadOptions): Promise<LocatedValue[]> {
  const lines = text.split("\n").map((line, index) => ({ line, where: `${path}:${index + 1}` }));
  const filled = lines.filter(({ line }) => line.trim() !== "");
  return loadEach(filled, async ({ line, where }) => ({ value: parseJson(line, where), where }), options);
}

function listOf(text: string, path: string): LocatedValue[] {
  const list = parseTask(z.array(z.unknown()), parseJson(text, path), path);
  return list.map((value, index) => ({ value, where: `${path}[${index}]` }));
}

function parseJson(text: string, where: string): unknown {
  try {
    return readJson(text);
  } catch (error) {
    throw taskError(where, "the row", `is not JSON: ${messageOf(error)}`);
  }
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
      // A dependency planted in the tree would stand before the mounted one.
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

/** A tree as a folder of the cache, under its own hash. */
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
    mounts: { [dependenciesInside]: await installedPackages(manifest, options) },
    env: { NODE_PATH: `${dependenciesInside}/node_modules` },
  });
}
