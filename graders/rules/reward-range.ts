/** Which rewards a task allows. A larger one, or one that is no number, would weigh more than all others of its batch. */
import type { Task } from "../../base/schema/task.ts";

const usualRange: [number, number] = [0, 1];

export function lowestReward({ reward_range: [lowest] = usualRange }: Task): number {
  return lowest;
}

/** What a solution earns. */
export function highestReward({ reward_range: [, highest] = usualRange }: Task): number {
  return highest;
}

/** null: the task allows it. */
export function whyOutside(task: Task, reward: number): string | null {
  const [lowest, highest] = [lowestReward(task), highestReward(task)];
  if (reward >= lowest && reward <= highest) return null;
  return `the grader gave the reward ${reward}, and the task allows ${lowest} to ${highest}: set reward_range in the task, or mend the grader`;
}
