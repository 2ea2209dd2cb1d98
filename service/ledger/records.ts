/** The records of the ledger: what a trainer asks for, what a node takes, and what an attempt came to. No tokens. */
import { z } from "zod";
import { Branching } from "../../base/schema/branching.ts";
import { Policy } from "../../base/schema/policy.ts";
import { groupBiases } from "../../base/schema/reasons/group-biases.ts";
import { wordsOf } from "../../base/schema/reasons/meaning.ts";
import { ResumeRecord, Tier, UserRecord } from "../../base/schema/rollout.ts";
import { ForkedFrom, Purpose, SessionOptions } from "../../base/schema/session-spec.ts";
import { Task } from "../../base/schema/task.ts";

/** What is left out stays so: the service's own configuration holds then, and not a default of ours. */
const own = <T extends z.ZodType>(field: { unwrap(): T }) => field.unwrap().optional();
const { sampling, seed, budgets, model, train_classes, restore, continuity, policy_mode, pinned_policy } = SessionOptions.shape;

export const usualParkMost = 64;
export const usualParkSeconds = 86_400;

/** What all rollouts of a set share. */
const SetFields = z.strictObject({
  harness: z.string().min(1).nullable().default(null).describe("a built-in harness by its name; null: the one of the service"),
  samples: z.number().int().min(1).max(10_000).default(4).describe("rollouts of each task: they are one group"),
  retries: z.number().int().min(0).max(100).default(1).describe("more attempts at a rollout after a failure of the infrastructure"),
  purpose: Purpose.extract(["train", "eval"]).default("train").describe("eval: recorded with the harness's own sampling, never trained"),
  sampling: own(sampling),
  seed: own(seed).describe("of an evaluation: the seeds of its calls follow from it, so that another set asks with the same ones"),
  budgets: own(budgets),
  model: own(model),
  train_classes: own(train_classes),
  restore: own(restore),
  continuity: own(continuity),
  policy_mode: own(policy_mode),
  pinned_policy: z
    .union([z.literal("in_force"), pinned_policy.unwrap()])
    .optional()
    .describe(
      "the only policy, by version and step, that samples the set; in_force: the one that is when the set is made. Where no engine has it, rollouts end as `policy_gone`",
    ),
  min_tier: Tier.optional().describe(
    "the least tier of the verdicts, on every node; the service's own (`--min-tier`) where that is higher. A node that grades below it gives rollouts back, which end as `node_unfit` where no other takes them",
  ),
  admitted_only: z
    .boolean()
    .optional()
    .describe(
      "only tasks that `alidade check` has admitted on the service's machine, in containers; true where the service has `--admitted-only`",
    ),
  priority: z.number().int().min(-1000).max(1000).default(0).describe("sets of a higher one are claimed first"),
  weight: z.number().min(0.001).max(1000).default(1).describe("share of the slots among sets of one priority"),
  labels: z.record(z.string().max(200), z.string().max(2_000)).default({}).describe("the trainer's own words, given back as they are"),
  webhook: z
    .string()
    .max(2_000)
    .optional()
    .describe(
      "http(s) address that is told when the set has more whole groups: a hint, signed as the service's own. Its operator must allow it; who may read the set sees it, so put no secret into it",
    ),
  expire_after: z
    .strictObject({
      seconds: z.number().int().min(60).max(1_000_000_000).describe("since the last rollout of the group ended"),
      unread: z.boolean().default(false).describe("also while no consumer of the set has kept a cursor"),
    })
    .nullable()
    .optional()
    .describe(
      "when results are removed, with their trajectories: those of groups that are whole, so old, and behind the kept cursor of each consumer. null: never; left out: as the service was started",
    ),
  max_version_lag: z
    .number()
    .int()
    .min(0)
    .max(1_000)
    .nullable()
    .default(null)
    .describe("policy steps that a rollout may be behind the trainer when it is trained; so many groups are begun. null: no bound"),
  groups_per_step: z
    .number()
    .int()
    .min(1)
    .max(100_000)
    .nullable()
    .default(null)
    .describe("groups that the trainer takes for one policy step; stated with max_version_lag"),
  on_stale: z
    .enum(["mask", "deliver", "leave_out"])
    .default("mask")
    .describe(
      "what happens in rows beyond max_version_lag. mask: each token of an older policy is masked; deliver: it is labelled alone; leave_out: the rollout is in no row",
    ),
  group_versions: z
    .enum(["any", "same"])
    .default("any")
    .describe("same: rollouts that another policy sampled than most of their group are out of loss and baseline"),
  over_provision: z
    .number()
    .int()
    .min(0)
    .max(1_000)
    .default(0)
    .describe("rollouts of a group beyond `samples`: the first `samples` results that stand are the group, the others are cancelled"),
  early_stop: z
    .number()
    .int()
    .min(1)
    .max(10_000)
    .nullable()
    .default(null)
    .describe("results that stand after which the rest of a group is cancelled; null: never"),
  allocation: z
    .strictObject({
      policy: z
        .string()
        .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "give the name of a policy: 1 to 64 letters, digits, points, hyphens and underscores")
        .describe("how groups share samples: `balanced`, or one of the service's `allocation_policies`"),
      first: z.number().int().min(2).max(10_000).describe("samples that each group has before the policy says how many more it gets"),
      most: z
        .number()
        .int()
        .min(2)
        .max(10_000)
        .describe("samples that a group may have; all groups together have no more than `samples` each"),
    })
    .nullable()
    .default(null)
    .describe("samples go where they teach most, after the first ones of each group; null: each group has `samples`"),
  branching: Branching.optional().describe(
    "forks of a group's rollouts: `samples` rollouts begin at the task's beginning; when these are over, the forks begin after their turns; a built-in policy",
  ),
  straggler_cut: z
    .strictObject({
      share: z.number().min(0).max(1).default(0).describe("of the group's results, which must stand; 0: from its first claim on"),
      seconds: z.number().int().min(1).max(604_800).describe("that the others have from then on"),
      rest: z
        .enum(["cancel", "park"])
        .optional()
        .describe(
          "cancel (default), or park: a rollout that runs is cancelled in its group, and one of a later group of the same task in this set goes on from it, with its sampled tokens",
        ),
      park_most: z
        .number()
        .int()
        .min(1)
        .max(4_096)
        .optional()
        .describe(`parked rollouts that the set holds, the newest ones; ${usualParkMost} where left out`),
      park_seconds: z
        .number()
        .int()
        .min(1)
        .max(604_800)
        .optional()
        .describe(`that a rollout waits for a later group at most; ${usualParkSeconds} where left out`),
    })
    .nullable()
    .default(null)
    .describe("when the rest of a group is cancelled by the clock; null: never"),
});

export const SetSpec = SetFields.superRefine((spec, context) => {
  for (const [path, message] of contradictions(spec)) context.addIssue({ code: "custom", path: [path], message });
});
export type SetSpec = z.infer<typeof SetFields>;

export type OnStale = SetSpec["on_stale"];
export type GroupVersions = SetSpec["group_versions"];

function contradictions(spec: z.infer<typeof SetFields>): [field: keyof SetSpec, message: string][] {
  const { max_version_lag: lag, groups_per_step: groups, early_stop, samples, purpose, branching, seed = null } = spec;
  const { first = samples, most = samples } = spec.allocation ?? {};
  const isPinned = (spec.pinned_policy ?? null) !== null;
  const { rest, park_most, park_seconds } = spec.straggler_cut ?? {};
  const isParked = rest === "park";
  const isSeeded = [spec.sampling ?? {}].flat().some((one) => one.seed !== undefined);
  return [
    ...when(
      lag !== null && groups === null,
      "groups_per_step",
      `max_version_lag is ${lag}: say with it how many groups the trainer takes for one policy step`,
    ),
    ...when(
      lag === null && groups !== null,
      "max_version_lag",
      `groups_per_step is ${groups}: it belongs to max_version_lag, which is not given`,
    ),
    ...when(
      lag !== null && purpose === "eval",
      "max_version_lag",
      `max_version_lag is ${lag} in a set of the purpose eval, which is never trained: leave it out`,
    ),
    ...when(
      seed !== null && purpose === "train",
      "seed",
      `seed is ${seed} in a set of the purpose train: weights that were trained on random numbers must not be sampled with the same ones again, so leave it out`,
    ),
    ...when(seed !== null && isSeeded, "seed", `seed is ${seed} beside a seed in sampling: give one of them`),
    ...when(isPinned && spec.policy_mode === "float", "policy_mode", "policy_mode is float beside pinned_policy: leave it out"),
    ...when(
      first > samples || most < samples,
      "allocation",
      `allocation has first ${first} and most ${most}: samples (${samples}) must lie between them`,
    ),
    ...when(
      spec.allocation !== null && spec.over_provision > 0,
      "over_provision",
      `over_provision is ${spec.over_provision} beside allocation, which decides how many there are: leave one of them out`,
    ),
    ...when(
      spec.allocation !== null && purpose === "eval",
      "allocation",
      "allocation is given in a set of the purpose eval, whose tasks are sampled alike: leave it out",
    ),
    ...when(
      branching !== undefined && branching.leaves <= samples,
      "branching",
      `branching has leaves ${branching?.leaves}, and samples is ${samples}: give more leaves, for the forks are those beyond samples`,
    ),
    ...when(
      branching !== undefined && (spec.allocation !== null || spec.over_provision > 0),
      "branching",
      `branching is given beside ${spec.allocation === null ? "over_provision" : "allocation"}, and both decide how many rollouts a group has: leave one of them out`,
    ),
    ...when(
      branching !== undefined && purpose === "eval",
      "branching",
      "branching is given in a set of the purpose eval, whose tasks are sampled alike: leave it out",
    ),
    ...when(
      !isParked && (park_most ?? park_seconds) !== undefined,
      "straggler_cut",
      `straggler_cut has ${park_most === undefined ? "park_seconds" : "park_most"} without rest: park: give \`rest: park\`, or leave it out`,
    ),
    ...when(
      isParked && purpose === "eval",
      "straggler_cut",
      "straggler_cut has rest: park in a set of the purpose eval, whose rollouts belong to their group: leave `rest` out",
    ),
    ...when(
      isParked && branching !== undefined,
      "straggler_cut",
      "straggler_cut has rest: park beside branching, whose rollouts belong to the tree of their group: leave one of them out",
    ),
    ...when(
      isParked && spec.policy_mode === "pin",
      "straggler_cut",
      "straggler_cut has rest: park beside policy_mode pin, which lets no rollout go on under other weights: leave one of them out",
    ),
    ...when(
      isParked && isPinned,
      "straggler_cut",
      "straggler_cut has rest: park beside pinned_policy, and a parked rollout may have another policy: leave one of them out",
    ),
    ...when(
      isParked && spec.group_versions === "same",
      "straggler_cut",
      "straggler_cut has rest: park beside group_versions same, which would mask each rollout that goes on under another policy: leave `rest` out",
    ),
    ...when(
      early_stop !== null && early_stop > (branching?.leaves ?? samples),
      "early_stop",
      `early_stop is ${early_stop}: give ${branching?.leaves ?? samples} (${branching === undefined ? "samples" : "leaves"}) at most`,
    ),
  ];
}

function when(isWrong: boolean, field: keyof SetSpec, message: string): [keyof SetSpec, string][] {
  return isWrong ? [[field, message]] : [];
}

/** Rollouts of one group: all of it, or those at some places. */
export const GroupPart = z.strictObject({
  group_key: z
    .string()
    .min(1)
    .max(500)
    // Halves of characters are all kept as the same replacement, so two keys would be one group.
    .refine((key) => key.isWellFormed(), "give whole characters: it has half of one"),
  task: Task,
  /** Places from 0; null: each place of the group. */
  places: z.array(z.number().int().nonnegative()).nullable().default(null),
});
export type GroupPart = z.infer<typeof GroupPart>;

/** Where a trajectory lies (blobs/), and what it must hash to. */
export const PayloadRef = z.strictObject({ key: z.string(), sha256: z.string(), bytes: z.number().int() });
export type PayloadRef = z.infer<typeof PayloadRef>;

const policyStep = z.number().int().nullable();
const count = z.number().int().nonnegative();

/** In the row of an attempt: about five kilobytes. One with more has a trajectory of many megabytes. */
export const mostEngineSpans = 500;

/** When engines had calls of an attempt, each of them by policy step. */
export const EngineSpans = z.array(
  z.strictObject({
    engine: z.string(),
    step: z.number().int(),
    times: z
      .array(z.number())
      .describe("by turns milliseconds until the engine has a call (the first in Unix time) and milliseconds in which it has one or more"),
  }),
);
export type EngineSpans = z.infer<typeof EngineSpans>;

/** What figures by policy step are made of (rollouts/figures): counts, so that attempts add up. */
export const AttemptFigures = z.strictObject({
  data_source: z.string().nullable().describe("of its task"),
  is_cut: z.boolean().describe("the harness was stopped by a budget, a full context or the clock"),
  edges: z.record(z.string(), count).describe("how calls go on from their parents (root, exact, same_text, diverged, unknown) -> calls"),
  row_tokens: count.describe("tokens of the rows that a trainer without options gets"),
  tree_tokens: count.describe("the same, each token of the tree once"),
  prompt_tokens: count.describe("of the policy's calls whose engine says how many of them were in its prefix cache"),
  cached_tokens: count.describe("those of them that were"),
  excluded: z
    .record(z.string(), count)
    .nullable()
    .describe("reason -> sampled tokens that a trainer without options does not train for it; null: an earlier version wrote the row"),
  causes: z.record(z.string(), count).nullable().describe("why contexts part -> calls; null: an earlier version wrote the row"),
  engine_spans: EngineSpans.nullable().describe(
    `when each engine had calls of the policy, by its step; null: an earlier version wrote the row, or they are more than ${mostEngineSpans} spans`,
  ),
});
export type AttemptFigures = z.infer<typeof AttemptFigures>;

/** What an attempt came to, as its node says it. */
export const AttemptResult = z.strictObject({
  /** failed: nothing was measured, by the infrastructure's doing or a mistake of the user's. */
  state: z.enum(["completed", "failed"]),
  reward: z.number().nullable(),
  components: z.record(z.string(), z.number().nullable()),
  stop_reason: z.string().nullable(),
  mask_reason: z.string().nullable().describe("why it is in neither loss nor baseline; null where it counts"),
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  session_id: z.string().nullable(),
  policies: z.array(Policy).describe("that its own calls were sampled with, in order"),
  oldest_step: policyStep.describe("lowest policy step that sampled its own calls; null: that of one of them is unknown"),
  newest_step: policyStep.describe("the highest one"),
  forked_from: ForkedFrom.nullable()
    .default(null)
    .describe("the turn of another rollout of its group that it goes on from (`branching`); null: it began at the task's beginning"),
  turns: z.number().int(),
  sampled_tokens: z.number().int(),
  trainable_tokens: z.number().int(),
  figures: AttemptFigures.nullable().describe("null: no call was recorded, or an earlier version wrote the row"),
  resume: ResumeRecord.nullable()
    .default(null)
    .describe(
      "how it went on where its node had died or it was taken up from a parked rollout; null: it did not, or another node had the log of its session",
    ),
  user: UserRecord.nullable()
    .default(null)
    .describe("who spoke for the user of its task; null: the task has none, it was not asked yet, or an earlier version wrote the row"),
  times: z.record(z.string(), z.number()).describe("Unix milliseconds: queued, init, ready (for the harness), run, ran, post, done"),
  payload: PayloadRef.nullable().describe("null: no call was recorded"),
});
export type AttemptResult = z.infer<typeof AttemptResult>;

/** An attempt before the last one, and what ended it. */
export const EarlierAttempt = z.strictObject({
  attempt: z.number().int(),
  node: z.string().describe("the name of the node that made it"),
  code: z.string().describe("what the infrastructure did to it, as an error's code; node_lost: its node died"),
  blameless: z
    .literal(true)
    .optional()
    .describe(
      "its node does not blame it for the loss: the node was only slow, or the attempt waited for its turn, or it had finished calls that no earlier attempt had",
    ),
});
export type EarlierAttempt = z.infer<typeof EarlierAttempt>;

/** How a submitted rollout ended. There is exactly one for each. */
export const ResultRow = AttemptResult.extend({
  state: z.enum(["completed", "failed", "cancelled"]),
  set_id: z.string(),
  group_key: z.string(),
  group_id: z.string(),
  group_size: z.number().int(),
  index: z.number().int().describe("place in the group, from 0"),
  rollout_id: z.string(),
  attempt: z.number().int().describe("0: it was cancelled before the first one began"),
  earlier: z.array(EarlierAttempt).describe("attempts that were begun again after a failure of the infrastructure, in order"),
  task_id: z.string(),
  task_hash: z.string(),
  finished: z.number().describe("Unix milliseconds"),
  policy_step: policyStep.describe("the step in force when it ended (in a line of whole groups: when the last of its group did)"),
  lag: policyStep.describe("policy_step - oldest_step; null: one of them is unknown"),
  stale: z.boolean().nullable().describe("lag is above the set's max_version_lag; null: there is no bound, or the lag is unknown"),
  biases: z.array(z.enum(wordsOf(groupBiases))).describe("of the set's group tools"),
});
export type ResultRow = z.infer<typeof ResultRow>;
