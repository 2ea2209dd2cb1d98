/** Loads rows of the SWE sets in their published form, and rows of our own form: .jsonl, a list in .json, or .parquet. */
import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { Task } from "../../base/schema/task.ts";
import { loadEach } from "../load-each.ts";
import { holdsQuestions } from "../questions/question-row.ts";
import { holdsList, type LocatedRow, readRows } from "../readers/read-rows.ts";
import { taskError } from "../task-error.ts";
import type { LoadOptions, TaskFormat } from "../task-format.ts";
import { taskIdOf } from "./columns.ts";
import { multiSwe } from "./multi-swe.ts";
import { withoutRequest } from "./nemo-gym.ts";
import { loadOwnRows } from "./own-rows.ts";
import { r2eGym } from "./r2e-gym.ts";
import { buildOf } from "./recipes/build-of.ts";
import { refusedSets } from "./refused-sets.ts";
import { sweBench } from "./swe-bench.ts";
import { sweBenchLive } from "./swe-bench-live.ts";
import { sweBenchPro } from "./swe-bench-pro.ts";
import { sweRebench } from "./swe-rebench.ts";
import type { Columns, SweSet } from "./swe-set.ts";
import { sweSmith } from "./swe-smith.ts";

/** Asked in this order. `sweBench` is last, because most other sets have its columns too. */
export const sweSets: readonly SweSet[] = [sweBenchPro, sweRebench, r2eGym, multiSwe, sweBenchLive, sweSmith, sweBench];

export const sweRow: TaskFormat = {
  name: "swe-row",
  title: "rows of the SWE sets: .jsonl, a list in .json, or .parquet",

  async matches(path) {
    const found = await stat(path).catch(() => null);
    if (!found?.isFile() || (await holdsQuestions(path))) return false;
    if (path.endsWith(".json")) return holdsList(path);
    return path.endsWith(".jsonl") || path.endsWith(".parquet");
  },

  async load(path, options) {
    const all = (await readRows(path, options)).map(({ value, where }) => ({ value: withoutRequest(value), where }));
    const rows = all.filter(({ value }) => isWanted(value, options.only));
    const [own, published] = partition(rows, ({ value }) => isRow(value) && Object.hasOwn(value, "source"));
    const tasks = await loadOwnRows(own, path, options);
    const read = await loadEach(
      published,
      ({ where }) => where,
      async (row) => ({ row, task: await toTask(row, dirname(path), options) }),
      options,
    );
    for (const { row, task } of read) tasks.set(row, task);
    return rows.flatMap((row) => tasks.get(row) ?? []);
  },
};

function partition<T>(all: T[], isFirst: (one: T) => boolean): [T[], T[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))];
}

function isRow(value: unknown): value is Columns {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/** Whether to load the row. If some ids are wanted, other rows are not read, so their mistakes do not matter. */
function isWanted(value: unknown, only: ReadonlySet<string> | undefined): boolean {
  if (only === undefined || !isRow(value)) return only === undefined;
  const { instance_id: id = multiSwe.idOf(value) ?? r2eGym.idOf(value) } = value;
  return typeof id === "string" && (only.has(id) || only.has(taskIdOf(id)));
}

async function toTask({ value, where }: LocatedRow, folder: string, options: LoadOptions): Promise<Task> {
  if (!isRow(value)) throw taskError(where, "the row", "is no object with columns");
  const set = [...sweSets, ...refusedSets].find(({ columns }) => columns.every((column) => Object.hasOwn(value, column)));
  if (set) {
    const task = await set.toTask(value, { where, folder });
    return options.images === "build" ? withBuild(task, set, value, where, options) : task;
  }
  const known = sweSets.map(({ title, columns }) => `${title} (${columns.join(", ")})`).join("; ");
  const found = Object.keys(value).slice(0, 20).join(", ").slice(0, 300);
  throw taskError(
    where,
    "the columns",
    `${found || "none"} are those of no set that is known: ${known}; or a row of one's own with source`,
  );
}

/** Returns the task with an image that is built from the row's recipe, instead of the published image. */
async function withBuild(task: Task, set: SweSet, row: Columns, where: string, options: LoadOptions): Promise<Task> {
  const { image, workdir } = task.environment;
  if (set.recipe === undefined)
    throw taskError(
      where,
      "images",
      `is build, and rows of ${set.title} do not say how their image is made: load them without --images build, and pull or build ${image}`,
    );
  const build = await buildOf(set.recipe(row, where), workdir, where, options);
  return { ...task, environment: { ...task.environment, image: null, build } };
}
