/** A run that is over: its tasks as they are now, and sandboxes of the kind that it used, for what is made of its works again. */
import { isAbsolute, resolve } from "node:path";
import { currentOwner } from "../../../base/host/owner.ts";
import type { Grader } from "../../../graders/index.ts";
import { withGrading } from "../../../graders/shared/index.ts";
import { acceptedTasks, checkPublicNetwork, noteLeftOut, publicGrantOf } from "../../../rollouts/accepted/index.ts";
import { oneAtATime, prepareTasks, tasksThatFit } from "../../../rollouts/index.ts";
import { engineAddresses, type NetworkRules, plainRules } from "../../../sandboxes/network/index.ts";
import { loadTaskSets } from "../../../tasks/index.ts";
import type { RunPlace } from "../../../view/index.ts";
import type { Config } from "../../config.ts";
import { loadConfig } from "../../load-config.ts";
import { loadPlugIns } from "../flags/plug-in-flags.ts";
import { grantsOf } from "../flags/task-grants.ts";
import { chooseBackend } from "../run/choose-backend.ts";
import { describedRun } from "../run/described-run.ts";

/** `tasks`: by their `task_id`; without those that cannot be loaded any more, which were noted. */
export type KeptRun = RunPlace & {
  config: Config;
  graders: readonly Grader[];
};

/** `only`: this task alone. Throws `config_invalid` where the folder is no run's. */
export async function openKeptRun(
  path: string,
  { note, only, overcommit = false }: { note: (text: string) => void; only?: string; overcommit?: boolean },
  signal: AbortSignal,
): Promise<KeptRun> {
  const { run_id, config: asked } = await describedRun(path, "run");
  const config = await loadConfig({ env: {}, defaults: asked, overrides: {} });
  const backend = await chooseBackend(config, signal, (event) => event.type === "note" && note(event.text));
  const { graders, formats } = await loadPlugIns(config);
  const onLeftOut = noteLeftOut(note);
  const places = config.tasks.map((place) => (isAbsolute(place) ? place : resolve(place)));
  const all = await loadTaskSets(places, { graders, formats, ...grantsOf(config), signal, progress: note, onLeftOut });
  const asGraded = all.map((task) => withGrading(task, config.grading, config.keep_processes));
  const loaded = asGraded.filter(({ task_id }) => only === undefined || task_id === only);
  const allowed = await acceptedTasks(loaded, (task) => checkPublicNetwork(task, publicGrantOf(config), graders), onLeftOut);
  const fitting = await tasksThatFit(allowed, oneAtATime, { backend, room: await backend.room(signal), overcommit, onLeftOut });
  const tasks = await prepareTasks(fitting, backend, { signal, progress: note, run_id, graders, onLeftOut });
  return {
    config,
    backend,
    graders,
    tasks: new Map(tasks.map((task) => [task.task_id, task])),
    owner: { run_id, owner: await currentOwner(), rules: rulesOf(config) },
  };
}

/** As in the run, and so its engines are out of reach. */
function rulesOf({ engine, engines = [], bounds }: Config): NetworkRules {
  const never = engineAddresses(() => [engine, ...engines].flatMap(({ url }) => url ?? []));
  return { ...plainRules(), never, bounds: { connections: bounds.network_connections, bytes: bounds.network_bytes } };
}
