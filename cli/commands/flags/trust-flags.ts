/** Flags that say how far the verdicts of tasks must be trusted, before anything is sampled for them. */
import { type Command, Option } from "commander";
import { Tier } from "../../../base/schema/rollout.ts";

export type TrustFlags = { minTier?: Tier; admittedOnly?: boolean };

/** `words` begin the sentences: what is done to such a task. */
export function addTrustFlags(command: Command, words: { below: string; notAdmitted: string }): Command {
  return command
    .addOption(new Option("--min-tier <tier>", `${words.below} is graded below this tier`).choices(Tier.options))
    .option("--admitted-only", `${words.notAdmitted} that \`alidade check\` has not admitted`);
}

/** As the run file has it. */
export function trustOf({ minTier, admittedOnly }: TrustFlags) {
  return { min_tier: minTier, admitted_only: admittedOnly };
}
