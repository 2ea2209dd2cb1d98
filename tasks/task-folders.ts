/** The folders of this machine that a task names. */
import { AlidadeError } from "../base/errors.ts";
import { isBelow, listFolder } from "../base/files/file-tree.ts";
import { cacheRoot } from "../base/host/cache-folder.ts";
import type { Task } from "../base/schema/task.ts";
import type { Grader } from "../graders/index.ts";
import { environmentsOf, withParts } from "../graders/index.ts";
import { nodeInside } from "../sandboxes/index.ts";

export type TaskFolders = {
  /** Their files are read and put into sandboxes. */
  read: Set<string>;
  /** Mounted, or sent to a builder, as they are. */
  given: Set<string>;
};

export function foldersOf(task: Task, graders?: readonly Grader[]): TaskFolders {
  const { gold_files, gold_script, steps = [] } = task;
  const environments = environmentsOf([task], graders).map(({ environment }) => environment);
  const given = environments.flatMap(({ mounts: { [nodeInside]: _, ...mounts }, build }) => [build?.context, ...Object.values(mounts)]);
  const judged = withParts(task.grader, graders).flatMap(({ grader: { folders = [] }, spec }) => folders.map((field) => spec[field]));
  const ofSteps = steps.flatMap((step) => [step.files, step.gold_script?.files]);
  const ofServices = environments.flatMap(({ services = {} }) => Object.values(services).map(({ files }) => files));
  const read = [gold_files, gold_script?.files, ...judged, ...ofSteps, ...ofServices, ...environments.map(({ files }) => files)];
  return { read: namesIn(read), given: namesIn(given) };
}

function namesIn(paths: unknown[]): Set<string> {
  return new Set(paths.filter((path) => typeof path === "string"));
}

/** Throws `task_invalid` for a task of which a folder cannot be read: each of its rollouts would find that out. */
export async function assertReadable(task: Task, graders?: readonly Grader[]): Promise<void> {
  for (const folder of foldersOf(task, graders).read)
    if (!isCached(folder))
      await listFolder(folder).catch((error: unknown) => {
        if (!(error instanceof AlidadeError)) throw error;
        throw new AlidadeError(error.code, `task ${task.task_id}: ${error.message}`, { cause: error, param: error.param });
      });
}

/** A folder of the cache is of our own making. */
export function isCached(folder: string): boolean {
  return isBelow(folder, cacheRoot());
}
