/**
 * Grades what an agent left: files, values in JSON, rows of SQLite databases, and that nothing else was changed. All of it
 * is read from outside, and nothing of the work is run.
 */
import { posix } from "node:path";
import { buffer } from "node:stream/consumers";
import { z } from "zod";
import { AlidadeError, messageOf } from "../base/errors.ts";
import { matchesAny } from "../base/files/file-tree.ts";
import { type Change, readLayer, type WorkLayer } from "../base/files/layer.ts";
import { readJson } from "../base/schema/read-json.ts";
import type { Sandbox } from "../sandboxes/index.ts";
import { queryRows } from "./bounded/query-rows.ts";
import type { GradeContext, Grader } from "./grader.ts";
import {
  conditionFields,
  hasOneCondition,
  hold,
  JsonPointer,
  looseTexts,
  oneCondition,
  textOfValue,
  valueAt,
  whyTooLong,
} from "./rules/condition.ts";
import { type RuleResult, ruleVerdict } from "./rules/rule-verdict.ts";
import { workEvidence } from "./work/work.ts";

const WorkPath = z
  .string()
  .min(1)
  .refine((path) => posix.normalize(path) === path && !path.startsWith("..") && !path.endsWith("/"), {
    error: "give a normal path: from the workdir, or absolute",
  });

const Check = z
  .strictObject({
    file: WorkPath.describe("from the workdir, or absolute inside the sandbox"),
    json: JsonPointer.optional().describe("a place in the file, which is JSON"),
    query: z
      .string()
      .regex(/^\s*(?:select|with|values)\b/i, "give a query that reads: SELECT, WITH or VALUES")
      .optional()
      .describe("of the file, which is a SQLite database"),
    ...conditionFields,
  })
  .refine(hasOneCondition, oneCondition)
  .refine(({ json, query }) => json === undefined || query === undefined, { path: ["query"], error: "give json or query, and not both" });
type Check = z.infer<typeof Check>;

const StateSpec = z
  .strictObject({
    kind: z.literal("state"),
    checks: z.array(Check).max(200).default([]),
    only: z.array(z.string().min(1)).optional().describe("globs of what may have changed: from the workdir, or absolute"),
  })
  .refine(({ checks, only }) => checks.length > 0 || only !== undefined, { error: "give checks, or only" });

export const state: Grader<z.infer<typeof StateSpec>> = {
  name: "state",
  title: "What is left: files, JSON, SQLite, and nothing else changed",
  version: "2",
  spec: StateSpec,
  // A value in JSON or of a query is a part of the file: nothing here knows what to write around it.
  loose: ({ checks }) =>
    checks.flatMap((check) => (check.json === undefined && check.query === undefined ? looseTexts(check, check.file) : [])),
  tier: () => "T3",

  async grade({ checks, only }, context) {
    const started = performance.now();
    await using files = await LeftFiles.open(
      checks.map(({ file }) => file),
      context,
    );
    const results: RuleResult[] = [];
    for (const [index, check] of checks.entries()) {
      const why = await whyNot(check, files, context.signal);
      results.push({ name: nameOf(check, index), holds: why === null, why: why ?? "" });
    }
    const { work_sha256, no_change, added, modified, deleted } = workEvidence(context.work, context.task);
    const changed = [...added, ...modified, ...deleted];
    const others = only === undefined ? [] : changed.filter((path) => !matchesAny(path, only));
    if (only !== undefined)
      results.push({ name: "nothing else", holds: others.length === 0, why: `changed: ${others.slice(0, 10).join(", ")}` });
    return ruleVerdict("state", results, context, started, { work_sha256, no_change });
  },
};

function nameOf({ file, json, query }: Check, index: number): string {
  return `${index + 1} ${file}${json ?? ""}${query === undefined ? "" : " query"}`;
}

/** null where the check holds. */
async function whyNot(check: Check, files: LeftFiles, signal: AbortSignal): Promise<string | null> {
  const found = await readingOf(check, files, signal);
  if ("problem" in found) return found.problem;
  const [holds] = await hold(check, [found.value], signal);
  if (holds === true) return null;
  const tooLong = whyTooLong(check, found.value);
  if (tooLong !== null) return tooLong;
  return holds === null ? "the pattern was not decided in time" : `it is ${textOfValue(found.value).slice(0, 200) || "not there"}`;
}

async function readingOf(
  { file, json, query }: Check,
  files: LeftFiles,
  signal: AbortSignal,
): Promise<{ value: unknown } | { problem: string }> {
  const content = await files.read(file);
  if (content === "too large") return { problem: `the files that are looked at have more than ${mostBytes} bytes` };
  if (content === null) return { value: undefined };
  if (query !== undefined) {
    const log = await files.read(`${file}-wal`);
    const rows = await queryRows(content, Buffer.isBuffer(log) ? log : null, query, signal);
    return "error" in rows ? { problem: rows.error } : { value: rows.rows };
  }
  if (json === undefined) return { value: content.toString("utf8") };
  try {
    return { value: valueAt(readJson(content.toString("utf8")), json) };
  } catch (error) {
    return { problem: `it is no JSON: ${messageOf(error).slice(0, 200)}` };
  }
}

/** All files that are looked at, in memory. What is larger was made to fill it, or is no state that is compared. */
const mostBytes = 128 * 1024 * 1024;

type FileContent = Buffer | "too large" | null;

/** The files as the agent left them: changed ones come from its work, all others from a sandbox as it was delivered. */
class LeftFiles implements AsyncDisposable {
  readonly #context: GradeContext;
  readonly #changes: Map<string, Change>;
  readonly #changed: Map<string, FileContent>;
  #delivered: Sandbox | undefined;

  private constructor(context: GradeContext, changes: Map<string, Change>, changed: Map<string, FileContent>) {
    this.#context = context;
    this.#changes = changes;
    this.#changed = changed;
  }

  /** Reads these of the work, from the workdir or absolute, and databases' logs beside them. */
  static async open(paths: readonly string[], context: GradeContext): Promise<LeftFiles> {
    const changes = new Map(context.work.changes.map((change) => [change.path, change]));
    const wanted = new Set(paths.flatMap((path) => [path, `${path}-wal`]).map((path) => absolutePath(path, context)));
    const changed = [...wanted].filter((path) => changes.get(path)?.type === "file");
    return new LeftFiles(context, changes, changed.length === 0 ? new Map() : await contentsOf(context.work, new Set(changed), mostBytes));
  }

  /** null where there is no file; links are not followed. */
  async read(path: string): Promise<FileContent> {
    const absolute = absolutePath(path, this.#context);
    for (let above = posix.dirname(absolute); above !== "/"; above = posix.dirname(above))
      if ((this.#changes.get(above)?.type ?? "folder") !== "folder") return null;
    return this.#changes.has(absolute) ? (this.#changed.get(absolute) ?? null) : this.#readDelivered(absolute);
  }

  async #readDelivered(absolute: string): Promise<Buffer | null> {
    this.#delivered ??= await this.#context.fresh();
    const [folder, name] = [posix.dirname(absolute), posix.basename(absolute)];
    try {
      return (await this.#delivered.readFiles(folder)).find(({ path }) => path === name)?.content ?? null;
    } catch (error) {
      if (error instanceof AlidadeError && error.code === "not_found") return null;
      // It is as it was delivered, so its size is not the agent's doing.
      if (error instanceof AlidadeError && error.owner === "policy")
        throw new AlidadeError("grader_error", `${folder} cannot be read as it was delivered: ${error.message}`, { cause: error });
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#delivered?.[Symbol.asyncDispose]();
  }
}

function absolutePath(path: string, { task }: GradeContext): string {
  return posix.isAbsolute(path) ? path : `${task.environment.workdir}/${path}`;
}

/** One pass over the work, to its end. */
async function contentsOf(work: WorkLayer, paths: Set<string>, room: number): Promise<Map<string, FileContent>> {
  const found = new Map<string, FileContent>();
  const firstNames = new Map<string, string>();
  let left = room;
  for await (const { path, type, target, size, content } of readLayer(work)) {
    if (!paths.has(path)) continue;
    if (type === "hardlink" && target !== null) firstNames.set(path, target);
    if (content === null) continue;
    found.set(path, size > left ? "too large" : await buffer(content));
    left -= size > left ? 0 : size;
  }
  if (firstNames.size === 0) return found;
  const firsts = await contentsOf(work, new Set(firstNames.values()), left);
  for (const [path, first] of firstNames) found.set(path, firsts.get(first) ?? null);
  return found;
}
