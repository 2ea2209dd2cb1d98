import { isApart, isIsolated, Tier, type Verdict } from "../base/schema/rollout.ts";

/** The weakest of several tiers; null where one is unknown. */
export function weakestTier<T extends Tier | null>(tiers: readonly T[]): T | null {
  if (tiers.some((tier) => tier === null)) return null;
  const least = Tier.options.find((tier) => (tiers as readonly (Tier | null)[]).includes(tier));
  return tiers.find((tier) => tier === least) ?? null;
}

/** That of the verdict that was isolated least. */
export function weakestIsolation(verdicts: readonly Pick<Verdict, "isolation">[]): Verdict["isolation"] {
  const all = verdicts.map(({ isolation }) => isolation);
  return all.find((one) => !isIsolated(one)) ?? all.find((one) => !isApart(one)) ?? all[0] ?? "none";
}
