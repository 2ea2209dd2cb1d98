/** Finds groups whose rollouts begin with different prompts. A trainer that identifies a group by its prompt cannot compare them. */

import type { Trajectory } from "../../base/schema/trajectory.ts";
import { type SelectedRows, selectRows } from "../../reconstruct/index.ts";
import { hashOfPrompt, mostCommon } from "../shapes/common-prompt.ts";

export type DifferentPrompts = { task_id: string | null; groups: number; of_groups: number };

/** Which attempt of which rollout has the prompts. */
export type PromptedAttempt = {
  task_id: string | null;
  group_id: string | null;
  rollout_id: string | null;
  session_id: string;
  attempt: number;
};

type PromptedRollout = { attempt: number; prompts: Set<string> };

export class GroupPrompts {
  /** Task -> group -> rollout, its last attempt. */
  readonly #tasks = new Map<string | null, Map<string | null, Map<string, PromptedRollout>>>();

  add(trajectory: Trajectory): void {
    const { task, group, rollout_id, session_id, attempt } = trajectory;
    this.addPrompts({ task_id: task.id, group_id: group.id, rollout_id, session_id, attempt }, promptsOf(selectRows(trajectory)));
  }

  /** `prompts`: what `promptsOf` gave. */
  addPrompts({ task_id, group_id, rollout_id, session_id, attempt }: PromptedAttempt, prompts: readonly string[] | null): void {
    if (prompts === null) return;
    const groups = this.#tasks.get(task_id) ?? new Map<string | null, Map<string, PromptedRollout>>();
    this.#tasks.set(task_id, groups);
    const rollouts = groups.get(group_id) ?? new Map<string, PromptedRollout>();
    groups.set(group_id, rollouts);
    const name = rollout_id ?? session_id;
    if (prompts.length > 0 && (rollouts.get(name)?.attempt ?? 0) <= attempt) rollouts.set(name, { attempt, prompts: new Set(prompts) });
  }

  /** The tasks that have such groups. */
  get different(): DifferentPrompts[] {
    const all = [...this.#tasks].map(([task_id, groups]) => {
      const parted = [...groups].filter(([id, rollouts]) => id !== null && doDiffer([...rollouts.values()]));
      return { task_id, groups: parted.length, of_groups: groups.size };
    });
    return all.filter(({ groups }) => groups > 0);
  }
}

/**
 * Hashes of the first prompts of an attempt's rows. null: it is not in the loss, and then it says nothing, because it may
 * have ended before its first prompt.
 */
export function promptsOf({ prompts, standing }: SelectedRows): string[] | null {
  if (!standing.in_loss) return null;
  const hashes = new Set<string>();
  for (const prompt of prompts) hashes.add(hashOfPrompt(prompt));
  return [...hashes];
}

/** By the rule of the exporters: each rollout has a row with the prompt that most have. */
function doDiffer(rollouts: PromptedRollout[]): boolean {
  const common = mostCommon(rollouts.map(({ prompts }) => prompts));
  return common !== null && rollouts.some(({ prompts }) => !prompts.has(common));
}

/** In words, for a person: what it means and what to do. */
export function describedPrompts({ task_id, groups, of_groups }: DifferentPrompts): string {
  return `task ${task_id}: in ${groups} of ${of_groups} groups the rollouts begin with different prompts. NeMo RL would compare none of them, so nemo-rl and nemo-gym leave such groups out: find what differs (a folder, a date, an id) with \`alidade diff\` and take it out of the harness's prompt.`;
}
