/** The tasks of a service: those that trainers may name, those that they send, and what a machine takes of them. */
import { AlidadeError } from "../../../base/errors.ts";
import { Task } from "../../../base/schema/task.ts";
import { version } from "../../../base/version.ts";
import { checksVersion } from "../../../graders/admission/index.ts";
import type { Grader } from "../../../graders/index.ts";
import { checkTier } from "../../../graders/index.ts";
import { checkGrading, checkKept, costOfSharing, withGrading } from "../../../graders/shared/index.ts";
import { acceptedTasks, checkPublicNetwork, noteLeftOut, publicGrantOf } from "../../../rollouts/accepted/index.ts";
import { assertAdmitted, assertIsolated, fitMachine, makeSlots, tasksThatFit } from "../../../rollouts/index.ts";
import { allCapabilities, type SandboxBackend } from "../../../sandboxes/index.ts";
import type { ServiceParts } from "../../../service/index.ts";
import { type Demands, strictest } from "../../../service/ledger/index.ts";
import { chosenTasks, hashedTasks, inlineTask, loadTaskSets } from "../../../tasks/index.ts";
import type { Config } from "../../config.ts";
import { loadPlugIns } from "../flags/plug-in-flags.ts";
import { grantsOf } from "../flags/task-grants.ts";
import { earlierRuns } from "../overview/earlier-runs.ts";

type Note = (text: string) => void;

export type KnownTasks = { tasks: Task[]; graders: readonly Grader[] } & Pick<ServiceParts, "taskOf" | "namedTasks">;

type Sandboxes = Pick<SandboxBackend, "capabilities">;

/** Where nodes are elsewhere it is not known which sandbox a rollout gets: the node that makes it looks again, with its own. */
const unknown: Sandboxes = { capabilities: allCapabilities };

/** `sandboxes`: those of the service's own node. Throws `task_invalid` where two have one name. */
export async function knownTasks(config: Config, signal: AbortSignal, note: Note, sandboxes: Sandboxes = unknown): Promise<KnownTasks> {
  const plugIns = await loadPlugIns(config);
  const onLeftOut = noteLeftOut(note);
  const all =
    config.tasks.length === 0
      ? []
      : await loadTaskSets(config.tasks, { ...plugIns, ...grantsOf(config), signal, progress: note, onLeftOut });
  const tasks = chosenTasks(all, config.choose, await earlierRuns(config.choose, note)).map((task) =>
    withGrading(task, config.grading, config.keep_processes),
  );
  const cost = costOfSharing(tasks);
  if (cost !== null) note(cost);
  const byName = new Map(tasks.map((task) => [task.task_id, task]));
  const twice = tasks.find((task) => byName.get(task.task_id) !== task);
  if (twice)
    throw new AlidadeError("task_invalid", `two tasks have the task_id ${twice.task_id}: a trainer could name only one of them`, {
      param: "task_id",
    });
  const own = demandsOf(config);
  const assertTrusted = trustedBy(sandboxes, plugIns.graders);
  await acceptedTasks(tasks, (task) => assertTrusted(task, own), onLeftOut, true);
  const found = async (given: unknown): Promise<Task> => {
    if (typeof given !== "string") return withGrading(await inlineTask(given, plugIns.graders), config.grading, config.keep_processes);
    const task = byName.get(given);
    if (task) return task;
    throw new AlidadeError("task_invalid", `the service has no task "${given.slice(0, 100)}": it was started with ${byName.size} tasks`, {
      param: "task",
    });
  };
  const taskOf = async (given: unknown, demands: Demands = {}): Promise<Task> => {
    const task = await found(given);
    await assertTrusted(task, strictest(own, demands));
    return task;
  };
  // Read anew: what is in their folders is what rollouts get.
  const namedTasks = async () => {
    const hashed = await hashedTasks(tasks, plugIns.graders, { onLeftOut });
    return hashed.map(({ task: { task_id }, hash }) => ({ task_id, hash }));
  };
  return { tasks, graders: plugIns.graders, taskOf, namedTasks };
}

/** What the service demands of every set. */
export function demandsOf({ min_tier, admitted_only }: Config): Demands {
  return { ...(min_tier !== null && { min_tier }), ...(admitted_only && { admitted_only }) };
}

/** Throws what is missing for a verdict of the task to count here. Records are read anew, so a task may be checked meanwhile. */
function trustedBy(sandboxes: Sandboxes, graders: readonly Grader[]) {
  return async (task: Task, { min_tier, admitted_only }: Demands): Promise<void> => {
    checkTier(task, min_tier ?? null, sandboxes, graders);
    if (!admitted_only) return;
    assertIsolated(sandboxes);
    await assertAdmitted(task, { version: checksVersion(version), graders });
  };
}

/**
 * How much this machine does at once, and which tasks it takes: each must fit beside others, as those that are known do. A
 * known task that is too large for it is named now, and refused where a trainer asks for it.
 */
export async function roomFor(
  config: Config,
  backend: SandboxBackend,
  { tasks, graders }: Pick<KnownTasks, "tasks" | "graders">,
  signal: AbortSignal,
  note: Note,
) {
  if (config.admitted_only) assertIsolated(backend);
  const room = await backend.room(signal);
  const fit = (tasks: Task[], wanted: Parameters<typeof fitMachine>[2]) =>
    fitMachine(tasks, Number.MAX_SAFE_INTEGER, wanted, backend, room, config.overcommit);
  const onLeftOut = noteLeftOut(note);
  const allowed = await acceptedTasks(tasks, (task) => checkPublicNetwork(task, publicGrantOf(config), graders), onLeftOut, true);
  const wanted = { ...config.concurrency, warm: config.warm.sandboxes };
  const { overcommit } = config;
  const asked = { samples: Number.MAX_SAFE_INTEGER, concurrency: wanted };
  const fitting = await tasksThatFit(allowed, asked, { backend, room, overcommit, onLeftOut });
  const { concurrency, note: less } = fit(fitting.length > 0 ? fitting : [usualTask], wanted);
  if (less !== null) note(less);
  /** Throws what is wrong with it here. */
  const admit = (task: Task): void => {
    checkPublicNetwork(task, publicGrantOf(config), graders);
    checkGrading(task, graders);
    checkKept(task, backend);
    checkTier(task, config.min_tier, backend, graders);
    fit([task], { ...concurrency, warm: config.warm.sandboxes });
  };
  const { evaluation } = config.concurrency;
  if (evaluation >= concurrency.run)
    throw new AlidadeError(
      "config_invalid",
      `concurrency.evaluation is ${evaluation} of ${concurrency.run} harnesses at once: give ${concurrency.run - 1} at most, so that other sets go on`,
      { param: "concurrency.evaluation" },
    );
  return { slots: makeSlots(concurrency, evaluation), admit };
}

/** The limits of a task that says nothing of them. */
const usualTask = Task.parse({ task_id: "usual", instruction: "-", grader: { kind: "script" } });
