import { Tier } from "../schema/rollout.ts";

/** The weakest of several tiers; null where one is unknown. */
export function weakestTier<T extends Tier | null>(tiers: readonly T[]): T | null {
  if (tiers.some((tier) => tier === null)) return null;
  const least = Tier.options.find((tier) => (tiers as readonly (Tier | null)[]).includes(tier));
  return tiers.find((tier) => tier === least) ?? null;
}
