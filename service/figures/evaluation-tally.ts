/** What the results of an evaluation set come to: mean reward and pass@k by task, and what they were sampled with. */
import { z } from "zod";
import { nameOfPolicy, Policy } from "../../base/schema/policy.ts";
import { type RewardOfTask, type Statistics, statisticsOf } from "../../base/statistics/statistics.ts";
import type { ResultRow } from "../ledger/index.ts";

type EvaluatedRow = Pick<ResultRow, "task_hash" | "reward" | "error" | "mask_reason" | "policies">;

export type Evaluation = Statistics & {
  /** A rollout passes with this reward or more. */
  pass: number;
  /** Results without a reward by the code of their end. They are in no mean and no pass@k. */
  unmeasured: Record<string, number>;
  /** Policies that sampled, each with the results that it had a part in. Two or more: the figures are of a mixture. */
  policies: (Policy & { results: number })[];
};

/** All that is known, for a later process. */
export const KeptEvaluation = z.strictObject({
  rewards: z.array(z.strictObject({ task_id: z.string().nullable(), reward: z.number().nullable() })),
  unmeasured: z.array(z.strictObject({ code: z.string(), results: z.number() })),
  policies: z.array(Policy.extend({ results: z.number() })),
});
export type KeptEvaluation = z.infer<typeof KeptEvaluation>;

export class EvaluationTally {
  readonly #rewards: RewardOfTask[];
  readonly #unmeasured: Map<string, number>;
  readonly #policies: Map<string, Policy & { results: number }>;

  constructor({ rewards, unmeasured, policies }: KeptEvaluation = { rewards: [], unmeasured: [], policies: [] }) {
    this.#rewards = rewards;
    this.#unmeasured = new Map(unmeasured.map(({ code, results }) => [code, results]));
    this.#policies = new Map(policies.map((one) => [nameOfPolicy(one), one]));
  }

  toKept(): KeptEvaluation {
    const unmeasured = [...this.#unmeasured].map(([code, results]) => ({ code, results }));
    return { rewards: this.#rewards, unmeasured, policies: [...this.#policies.values()] };
  }

  add({ task_hash, reward, error, mask_reason, policies }: EvaluatedRow): void {
    // The hash is of the whole task: two tasks of one name are two.
    this.#rewards.push({ task_id: task_hash, reward });
    if (reward === null) addOne(this.#unmeasured, error?.code ?? mask_reason ?? "unknown");
    for (const policy of policies) {
      const name = nameOfPolicy(policy);
      this.#policies.set(name, { ...policy, results: (this.#policies.get(name)?.results ?? 0) + 1 });
    }
  }

  /** `pass`: the reward with which a rollout passes. */
  figures(pass: number): Evaluation {
    return {
      ...statisticsOf(this.#rewards, { pass, ks: null }),
      pass,
      unmeasured: Object.fromEntries(this.#unmeasured),
      policies: [...this.#policies.values()],
    };
  }
}

function addOne(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
