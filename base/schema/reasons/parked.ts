/** Why a parked rollout goes on in no later group. */
import type { Meaning } from "./meaning.ts";

const longer = "submit a later group of its task sooner";

export const parkedReasons = {
  nothing_sampled: { what: "No call of it had finished, so there is nothing to go on from.", cure: null },
  broken: {
    what: "Its attempt failed, or the infrastructure broke it, before its node heard of the cut: a replay would go where it broke.",
    cure: null,
  },
  taker_ended: {
    what: "The rollout that took it up was cancelled or failed, so what it had sampled is in no group.",
    cure: null,
  },
  too_stale: {
    what: "The group in which it began was begun at a policy step that is further back than the set's `max_version_lag`.",
    cure: `${longer}, or raise \`max_version_lag\``,
  },
  too_old: {
    what: "It was parked for longer than `park_seconds` of the set's `straggler_cut`.",
    cure: `${longer}, or raise \`park_seconds\``,
  },
  too_many: {
    what: "The set held more parked rollouts than `park_most` of its `straggler_cut`, and this one was among the oldest.",
    cure: "raise `park_most`, or submit later groups of the tasks whose rollouts are parked",
  },
  set_over: { what: "The set is drained and all its rollouts are over.", cure: null },
  set_cancelled: { what: "The set was cancelled.", cure: null },
} as const satisfies Record<string, Meaning>;

export type ParkedReason = keyof typeof parkedReasons;
