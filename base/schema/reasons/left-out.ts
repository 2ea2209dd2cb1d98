/** Why whole rollouts and groups are not in a file, and why a rollout is out of loss and baseline. */
import type { Meaning } from "./meaning.ts";

const measured = "`alidade show <rollout>` says why nothing was measured";

/** A rollout of which an exporter writes nothing. */
export const rolloutReasons = {
  damaged: { what: "Its trajectory cannot be read.", cure: "the message before names the line" },
  superseded: { what: "A later attempt, or a later session of the same rollout, takes its place.", cure: null },
  no_reward: { what: "Nothing was measured of the rollout.", cure: `${measured}; \`--unmeasured zero\` counts such work as a failure` },
  low_reward: { what: "Its reward is below `--min-reward`.", cure: null },
  not_in_loss: { what: "The rollout is out of the loss.", cure: "its mask says why" },
  not_in_baseline: {
    what: "The rollout is out of its group's baseline, and the format computes baselines from rows.",
    cure: "its mask says why",
  },
  no_baseline: { what: "No other rollout of the group was measured, so it has no advantage.", cure: "run more samples a group" },
  no_token_ids: {
    what: "No token ids of it are known.",
    cure: "use an engine that returns token ids (`alidade doctor`), or the format `chat`",
  },
  images: {
    what: "Its context holds pictures, and the format has none, or the engine did not tell where they stand.",
    cure: "use `flat` or a format with `media`; `alidade doctor` says what the engine tells of pictures",
  },
  no_calls: { what: "It made no call.", cure: "`alidade show` prints what the harness said" },
  nothing_trained: { what: "None of its tokens is trained.", cure: "the reasons for its calls say why" },
  over_group_size: { what: "Its group has more rollouts than `--group-size`.", cure: "raise `--group-size`" },
  prompts_differ: {
    what: "It begins with another prompt than its group, and the trainer knows groups by their prompt.",
    cure: "look at the first prompts with `alidade diff`; a folder, a date or an id in the prompt parts them",
  },
  first_turn_untrained: {
    what: "Its first turn is not trained, and the format cannot say where its first prompt ends.",
    cure: "use `nemo-rl`, whose rows say it",
  },
  stale_policy: {
    what: "A policy older than the set's `max_version_lag` sampled some of it, and its `on_stale` is `leave_out`.",
    cure: "`on_stale: mask` keeps its newer tokens",
  },
  line_too_long: {
    what: "The rows of its line of results, with the pictures and experts that they name, are longer than 128 MiB.",
    cure: "ask without `whole_groups`, run fewer samples a group, or export the run's folder",
  },
  group_left_out: { what: "Its group was left out.", cure: "the reason of the group says why" },
} as const satisfies Record<string, Meaning>;

/** A group of which an exporter writes nothing. */
export const groupReasons = {
  incomplete: {
    what: "It has fewer measured rollouts than the trainer expects.",
    cure: "resume the run with `--resume`, or state a smaller `--group-size`",
  },
  nothing_trained: { what: "None of its rollouts has a trained token.", cure: "the reasons for their calls say why" },
  prompts_differ: rolloutReasons.prompts_differ,
  first_turn_untrained: rolloutReasons.first_turn_untrained,
  no_preference: { what: "No two of its rollouts have rewards that differ by more than `--min-gap`.", cure: "run more samples a group" },
  no_answer: { what: "One of the pair has no turn that may be learned from.", cure: "the reasons for its calls say why" },
  different_prompts: {
    what: "The two rollouts of a pair were asked different things.",
    cure: "look at the first prompts with `alidade diff`",
  },
  no_difference: { what: "The two rollouts of a pair said the same.", cure: null },
  different_observations: {
    what: "The two rollouts of a pair differ first in what a tool said, and not in what the policy said.",
    cure: "make the tools answer alike, or use `dpo`, which compares whole conversations",
  },
} as const satisfies Record<string, Meaning>;

/** Why a rollout is in neither loss nor baseline; besides these, the codes of `errors.ts` whose owner is the infrastructure. */
export const maskReasons = {
  no_call_seen: {
    what: "The harness made no call, so whatever was graded is not the policy's doing.",
    cure: "point the harness at `$OPENAI_BASE_URL` or its like; `alidade show` prints what it said",
  },
  not_graded: { what: "The rollout ended before it was graded.", cure: "run it again with `--resume`" },
  cut_by_the_clock_while_the_engine_was_slow: {
    what: "The time ran out while the engine was slow, which says nothing about the policy.",
    cure: "give the engine fewer rollouts at once, or the harness more time",
  },
  members_disagree: {
    what: "Agents of one rollout were given different rewards.",
    cure: "give the reward once, to any session of the rollout",
  },
  eval_member: {
    what: "An agent of the rollout is there for evaluation.",
    cure: "keep trained and evaluated agents in rollouts of their own",
  },
  other_policy_than_group: {
    what: "Another policy sampled it than most of its group, and the set's `group_versions` is `same`.",
    cure: "`group_versions: any` keeps it; `max_version_lag: 0` makes it rare",
  },
  parked: {
    what: "It was slower than its group, and the set's `straggler_cut` parks such rollouts: a later group of its task may go on from it.",
    cure: "submit a later group of its task",
  },
  interrupted: { what: "The run's process died during the rollout.", cure: "run it again with `--resume`" },
} as const satisfies Record<string, Meaning>;

export type RolloutReason = keyof typeof rolloutReasons;
export type GroupReason = keyof typeof groupReasons;
export type MaskReason = keyof typeof maskReasons;
