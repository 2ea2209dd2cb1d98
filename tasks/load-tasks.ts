/** Loads tasks from files and folders of any format. */
import { resolve } from "node:path";
import { AlidadeError } from "../base/errors.ts";
import type { Task } from "../base/schema/task.ts";
import { exists } from "./host-path.ts";
import { loadEach } from "./load-each.ts";
import { taskFormats } from "./registry.ts";
import { isSome, noneLeft } from "./sets/none-left.ts";
import { assertReadable } from "./task-folders.ts";
import type { LoadOptions, TaskFormat } from "./task-format.ts";
import { WantedTask } from "./wanted-task.ts";

/**
 * The tasks at a path, ready to run: sources fetched, host paths absolute. `path#id` names one of them.
 *
 *     const tasks = await loadTasks("examples/tasks/swe-npm.jsonl#minimist-constructor-pollution");
 */
export async function loadTasks(path: string, options: LoadOptions = {}): Promise<Task[]> {
  // A `#` may be part of a path too.
  const [place, id] = (await exists(path)) ? [resolve(path), null] : splitId(path);
  if (!(await exists(place))) throw new AlidadeError("task_invalid", `there is no file or folder ${place}`, { param: "tasks" });
  const format = await formatOf(place, options.formats);
  let leftOut = 0;
  const onLeftOut = (error: AlidadeError): void => {
    if (!options.onLeftOut) throw error;
    leftOut += 1;
    options.onLeftOut(error);
  };
  const asked = { ...options, ...(options.onLeftOut && { onLeftOut }) };
  const only = id === null ? null : new WantedTask(id);
  const wanted = only === null ? asked : { ...asked, only };
  const loaded = (
    await loadEach(
      [place],
      () => place,
      () => format.load(place, wanted),
      asked,
    )
  ).flat();
  const tasks = await loadEach(
    loaded,
    ({ task_id }) => `task ${task_id}`,
    (task) => readable(task, options.graders),
    asked,
  );
  if (tasks.length === 0 && leftOut === 0)
    throw only?.missing(place) ?? new AlidadeError("task_invalid", `${place} holds no tasks`, { param: "tasks" });
  const seen = new Set<string>();
  return tasks.filter(({ task_id }) => {
    if (seen.size !== seen.add(task_id).size) return true;
    onLeftOut(new AlidadeError("task_invalid", `${place} holds two tasks with the task_id ${task_id}`, { param: "task_id" }));
    return false;
  });
}

/**
 * The tasks of several places; one that cannot be loaded is left out, and `onLeftOut` gets its error. Throws all of
 * them as one where no task is left.
 */
export async function loadTaskSets(
  places: readonly string[],
  options: LoadOptions & Required<Pick<LoadOptions, "onLeftOut">>,
): Promise<Task[]> {
  const errors: AlidadeError[] = [];
  const onLeftOut = (error: AlidadeError): void => void errors.push(error);
  const tasks = (await Promise.all(places.map((place) => loadTasks(place, { ...options, onLeftOut })))).flat();
  if (tasks.length === 0 && isSome(errors)) throw noneLeft(errors);
  errors.forEach(options.onLeftOut);
  return tasks;
}

async function readable(task: Task, graders: LoadOptions["graders"]): Promise<Task> {
  await assertReadable(task, graders);
  return task;
}

function splitId(path: string): [string, string | null] {
  const at = path.lastIndexOf("#");
  return at === -1 ? [resolve(path), null] : [resolve(path.slice(0, at)), path.slice(at + 1)];
}

async function formatOf(path: string, formats: readonly TaskFormat[] = taskFormats): Promise<TaskFormat> {
  for (const format of formats) if (await format.matches(path)) return format;
  const known = formats.map((format) => `${format.name} (${format.title})`).join("; ");
  throw new AlidadeError("task_invalid", `${path} is in no task format that is known: ${known}`, { param: "tasks" });
}
