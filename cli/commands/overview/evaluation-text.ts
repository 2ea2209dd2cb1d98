/** What an evaluation came to, for a person. */

import { nameOfPolicy } from "../../../base/schema/policy.ts";
import type { Interval } from "../../../base/statistics/intervals.ts";
import type { SetEvaluation } from "../../../service/index.ts";
import { table, visibleText } from "../../../view/text/index.ts";

export function evaluationText(found: SetEvaluation): string {
  const { tasks, rollouts, measured, mean_reward, mean_interval, pass_at_k } = found;
  const rows = [
    ["mean reward", short(mean_reward), between(mean_interval)],
    ...pass_at_k.map(({ k, value, interval }) => [`pass@${k}`, short(value), between(interval)]),
  ];
  const head = `${measured} of ${rollouts} results of ${tasks} tasks have a reward`;
  return [head, ...notesOf(found), table(["", "", "95 %"], rows)].join("\n");
}

function notesOf({ unmeasured, policies, open, biases }: SetEvaluation): string[] {
  const without = Object.entries(unmeasured).map(([code, count]) => `${count} ${code}`);
  const sampled = policies.map((policy) => `${visibleText(nameOfPolicy(policy))} ${policy.results}`);
  return [
    ...(without.length === 0 ? [] : [`  without a reward, and in no figure: ${without.join(", ")}`]),
    ...(sampled.length === 0
      ? []
      : [`  ${sampled.length > 1 ? "a mixture of policies" : "policy"}, with its results: ${sampled.join(", ")}`]),
    ...(open === 0 ? [] : [`  ${open} rollouts are not over: so far it is of those that were quick`]),
    ...(biases.length === 0 ? [] : [`  biased by ${biases.join(", ")} (docs/reasons.md)`]),
  ];
}

export const short = (value: number | null): number | null => (value === null ? null : Number(value.toFixed(3)));

export function between(interval: Interval | null | undefined): string | null {
  return interval ? `${interval.low.toFixed(3)} to ${interval.high.toFixed(3)}` : null;
}
