/** The tasks of a run that can count here, and how many rollouts the machine makes of them at once. */

import type { AlidadeError } from "../../../base/errors.ts";
import type { Task } from "../../../base/schema/task.ts";
import { version } from "../../../base/version.ts";
import { checksVersion } from "../../../graders/admission/index.ts";
import { checkTier } from "../../../graders/index.ts";
import { checkGrading, checkKept, costOfSharing, withGrading } from "../../../graders/shared/index.ts";
import type { Harness } from "../../../harnesses/index.ts";
import {
  acceptedTasks,
  assertForkable,
  assertTakesTask,
  checkPublicNetwork,
  LeftOutTasks,
  publicGrantOf,
} from "../../../rollouts/accepted/index.ts";
import { admittedTasks, type Concurrency, fitMachine, tasksThatFit } from "../../../rollouts/index.ts";
import type { SandboxBackend } from "../../../sandboxes/index.ts";
import { chosenTasks, loadTaskSets } from "../../../tasks/index.ts";
import type { Config } from "../../config.ts";
import type { loadPlugIns } from "../flags/plug-in-flags.ts";
import { grantsOf } from "../flags/task-grants.ts";
import { type CountsOfSet, earlierRuns } from "../overview/earlier-runs.ts";

type PlugIns = Awaited<ReturnType<typeof loadPlugIns>>;
type Telling = { note: (text: string) => void; onLeftOut: (error: AlidadeError) => void; signal: AbortSignal; countsOfSet?: CountsOfSet };

/** Throws what makes the run impossible, and where no task is left why; `onLeftOut` gets the error of each task that cannot be one of it. */
export async function tasksOfRun(
  config: Config,
  plugIns: PlugIns,
  backend: SandboxBackend,
  harness: Harness,
  telling: Telling,
): Promise<{ tasks: Task[]; concurrency: Concurrency }> {
  const { note, signal } = telling;
  const { graders } = plugIns;
  const leftOut = new LeftOutTasks(telling.onLeftOut);
  const onLeftOut = leftOut.add;
  const chosen = await tasksAskedFor(config, plugIns, { ...telling, onLeftOut });
  const accept = (task: Task): void => {
    if (config.branching !== null) assertForkable(task, config.branching);
    checkKept(task, backend);
    assertTakesTask(task, harness);
    checkPublicNetwork(task, publicGrantOf(config), graders);
    checkTier(task, config.min_tier, backend, graders);
  };
  const accepted = await acceptedTasks(chosen, accept, onLeftOut, true);
  const admission = { version: checksVersion(version), graders, onLeftOut };
  const admitted = config.admitted_only ? await admittedTasks(accepted, backend, admission) : accepted;
  const { samples, overcommit } = config;
  const wanted = { samples, concurrency: { ...config.concurrency, warm: config.warm.sandboxes } };
  const room = await backend.room(signal);
  const tasks = await tasksThatFit(admitted, wanted, { backend, room, overcommit, onLeftOut, mayBeNone: true });
  leftOut.assertSome(tasks);
  const { concurrency, note: less } = fitMachine(tasks, samples, wanted.concurrency, backend, room, overcommit);
  if (less !== null) note(less);
  return { tasks, concurrency };
}

/** Those that the configuration chooses and that can be graded. */
export async function tasksAskedFor(config: Config, plugIns: PlugIns, telling: Telling): Promise<Task[]> {
  const { note, onLeftOut, signal, countsOfSet = null } = telling;
  const earlier = await earlierRuns(config.choose, note, countsOfSet);
  const loaded = await loadTaskSets(config.tasks, { ...plugIns, ...grantsOf(config), signal, progress: note, onLeftOut });
  const asked = chosenTasks(loaded, config.choose, earlier).map((task) => withGrading(task, config.grading, config.keep_processes));
  const chosen = await acceptedTasks(asked, (task) => checkGrading(task, plugIns.graders), onLeftOut);
  const cost = costOfSharing(chosen);
  if (cost !== null) note(cost);
  return chosen;
}
