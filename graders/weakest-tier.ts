import { Tier, Verdict } from "../base/schema/rollout.ts";

/** The weakest of several tiers; null where one is unknown. */
export function weakestTier<T extends Tier | null>(tiers: readonly T[]): T | null {
  if (tiers.some((tier) => tier === null)) return null;
  const least = Tier.options.find((tier) => (tiers as readonly (Tier | null)[]).includes(tier));
  return tiers.find((tier) => tier === least) ?? null;
}

/** That of the verdict that was isolated least. */
export function weakestIsolation(verdicts: readonly Pick<Verdict, "isolation">[]): Verdict["isolation"] {
  const strongest = Verdict.shape.isolation.options;
  return verdicts.map(({ isolation }) => isolation).reduce((a, b) => (strongest.indexOf(b) > strongest.indexOf(a) ? b : a), "container");
}
