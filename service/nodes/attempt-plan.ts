/** What a claim says, as a plan for this machine. */

import type { SessionOptions } from "../../base/schema/session-spec.ts";
import type { Harness } from "../../harnesses/index.ts";
import { derivedSeed } from "../../proxy/index.ts";
import type { RolloutPlan } from "../../rollouts/index.ts";
import type { Claim } from "../ledger/index.ts";

/** Options of sessions that a set may choose; of those that it leaves out the operator's hold. */
const chosen = ["sampling", "budgets", "model", "train_classes", "restore", "continuity", "policy_mode"] as const;

/** One attempt: the ledger counts them, and has the next one made where there is room. */
export function attemptPlan(claim: Claim, harness: Harness, session: Partial<SessionOptions>): RolloutPlan {
  const { spec } = claim;
  const own = chosen.flatMap((name) => (spec[name] === undefined ? [] : [[name, spec[name]] as const]));
  return {
    set_id: claim.set_id,
    rollout_id: claim.rollout_id,
    attempt: claim.attempt,
    retries: 0,
    task: claim.task,
    task_hash: claim.task_hash,
    group_id: claim.group_id,
    group_size: claim.group_size,
    sample_index: claim.index,
    harness,
    session: { ...session, ...Object.fromEntries(own), ...pinOf(claim), ...seedOf(claim), purpose: spec.purpose },
  };
}

/** By the group's key, which another set may have again. So two groups of one task are asked with seeds of their own. */
function seedOf({ spec, group_key }: Claim): Partial<SessionOptions> {
  return spec.seed == null ? {} : { seed: derivedSeed(spec.seed, group_key) };
}

/** The ledger keeps the policy itself, whatever the set asked for. */
function pinOf({ spec: { pinned_policy } }: Claim): Partial<SessionOptions> {
  return typeof pinned_policy === "object" ? { pinned_policy } : {};
}
