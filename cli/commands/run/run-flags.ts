/** What the flags of a run come to: its configuration, its id and its folder. */
import { join, resolve } from "node:path";
import { AlidadeError } from "../../../base/errors.ts";
import { newId } from "../../../base/schema/ids.ts";
import type { Config } from "../../config.ts";
import { givenRolloutConfig, type RolloutFlags } from "../flags/rollout-flags.ts";
import { type TaskChoiceFlags, taskChoiceOf } from "../flags/task-choice.ts";
import type { ImageSourceFlags } from "../flags/task-grants.ts";
import { type TrustFlags, trustOf } from "../flags/trust-flags.ts";
import type { RunServiceFlags } from "./service-flags.ts";

export type RunFlags = RolloutFlags &
  RunServiceFlags &
  TaskChoiceFlags &
  TrustFlags &
  ImageSourceFlags & {
    samples?: number;
    taskEnv?: string[];
    warm?: number;
    imagesGb?: number;
    keepFreeGb?: number;
    grading?: string;
    keepProcesses?: boolean;
    controlPort?: number;
    resume?: string;
    retrySetAside?: boolean;
  };

export type Started = { config: Config; path: string; runId: string };

/** A new run, and the keys of its configuration that were given. */
export async function newRun(tasks: string[], flags: RunFlags): Promise<Started & { given: string[] }> {
  const found = await givenRolloutConfig(flags, tasks, {
    choose: taskChoiceOf(flags),
    samples: flags.samples,
    task_env: flags.taskEnv,
    images: flags.images,
    repositories: flags.repositories && resolve(flags.repositories),
    harbor_reward: flags.harborReward,
    warm: { sandboxes: flags.warm },
    disk: { images_gb: flags.imagesGb, keep_free_gb: flags.keepFreeGb },
    grading: flags.grading,
    keep_processes: flags.keepProcesses,
    ...trustOf(flags),
  });
  if (found.config.tasks.length === 0)
    throw new AlidadeError("config_invalid", "no tasks: name files or folders, or set `tasks` in the run file", { param: "tasks" });
  const runId = newId("run").slice(0, 11);
  return { ...found, runId, path: join(found.config.out, runId) };
}

/** Throws `config_invalid` for what cannot be given beside --resume. `others`: the flags without those that can. */
export function assertOwnConfiguration(tasks: string[], others: object): void {
  const given = Object.entries(others).filter(([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0));
  const [other] = [...given.map(([name]) => name), ...(tasks.length > 0 ? ["tasks"] : [])];
  if (other === undefined) return;
  throw new AlidadeError("config_invalid", `--resume goes on with the run's own configuration: ${other} cannot be given as well`, {
    param: other,
  });
}
