/** The tasks of a run as groups for a service: by name where it has the same one, else as values, where they are whole without this machine. */

import { AlidadeError } from "../../../base/errors.ts";
import type { Task } from "../../../base/schema/task.ts";
import { acceptedTasks, assertDistinct, isTheUsers, type OnTaskLeftOut } from "../../../rollouts/accepted/index.ts";
import type { AskedTask, NamedTask, RolloutSet } from "../../../service/index.ts";
import { hashedTasks, inlineTask, toInline } from "../../../tasks/index.ts";
import type { Config } from "../../config.ts";
import { loadPlugIns } from "../flags/plug-in-flags.ts";
import type { CountsOfSet } from "../overview/earlier-runs.ts";
import { tasksAskedFor } from "./tasks-of-run.ts";

export type GroupToSend = { group_key: string; task: AskedTask };

/** One group a task, by its id. `known`: by the service. `onLeftOut` gets the error of each task that cannot be sent; throws the first where none is left. */
export async function groupsToSend(
  config: Config,
  known: readonly NamedTask[],
  telling: { note: (text: string) => void; onLeftOut: OnTaskLeftOut; signal: AbortSignal; countsOfSet: CountsOfSet },
): Promise<GroupToSend[]> {
  const plugIns = await loadPlugIns(config);
  const tasks = await tasksAskedFor(config, plugIns, telling);
  assertDistinct(tasks);
  const names = new Map(known.map(({ task_id, hash }) => [task_id, hash]));
  const hashes = new Map((await hashedTasks(tasks, plugIns.graders)).map(({ task, hash }) => [task, hash]));
  const isKnown = (task: Task): boolean => names.get(task.task_id) === hashes.get(task);
  const sent = await acceptedTasks(
    tasks,
    async (task) => {
      if (!isKnown(task))
        await inlineTask(toInline(task), plugIns.graders).catch((error) => Promise.reject(withoutFolder(task, names, error)));
    },
    telling.onLeftOut,
  );
  return sent.map((task) => ({ group_key: task.task_id, task: isKnown(task) ? task.task_id : toInline(task) }));
}

function withoutFolder({ task_id }: Task, names: ReadonlyMap<string, string>, error: unknown): unknown {
  if (!isTheUsers(error)) return error;
  const has = names.has(task_id) ? "another task of this name" : "no task of this name";
  return new AlidadeError(
    "task_invalid",
    `task ${task_id} cannot be sent, for its ${error.param} is a folder of this machine, and the service has ${has}: start the service with it, or make its files with environment.setup`,
    { cause: error, param: error.param },
  );
}

/** The service reads 64 MiB at most; tasks have a few kilobytes. */
const atOnce = 200;

/** A group that is there already is not made again. `onLeftOut` gets the service's refusal of a task; throws the first where all are refused. */
export async function sendGroups(
  set: RolloutSet,
  groups: readonly GroupToSend[],
  onLeftOut: OnTaskLeftOut,
  signal: AbortSignal,
): Promise<void> {
  const refusals: AlidadeError[] = [];
  for (let at = 0; at < groups.length; at += atOnce) refusals.push(...(await refusalsOf(set, groups.slice(at, at + atOnce), signal)));
  if (refusals[0] && refusals.length === groups.length) {
    // Nothing will come of it, and `alidade results` finds one set that is at work.
    await set.drain(signal);
    throw refusals[0];
  }
  refusals.forEach(onLeftOut);
}

/** One bad line refuses them all, so each is sent alone then. */
async function refusalsOf(set: RolloutSet, groups: readonly GroupToSend[], signal: AbortSignal): Promise<AlidadeError[]> {
  try {
    await set.submit(groups, signal);
    return [];
  } catch (error) {
    if (!isOfTask(error)) throw error;
    if (groups.length === 1)
      return [new AlidadeError(error.code, `task ${groups[0]?.group_key}: ${error.message}`, { cause: error, param: error.param })];
    const all: AlidadeError[] = [];
    for (const group of groups) all.push(...(await refusalsOf(set, [group], signal)));
    return all;
  }
}

/** The task is at fault, and not the token, the set, or another content under its key. */
function isOfTask(error: unknown): error is AlidadeError {
  return error instanceof AlidadeError && [400, 413].includes(error.status);
}
