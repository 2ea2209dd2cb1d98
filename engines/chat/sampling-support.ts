/**
 * Reads which tokens `top_p`, `top_k` and `min_p` kept at the place of a sampled token. Two proofs: the sampled token is one of them,
 * and where the server gives all their logprobs, these add up to 1.
 */
import type { Sampling } from "../../base/schema/message.ts";
import type { TokenSupport } from "../engine.ts";
import { isMeasured } from "./alignment.ts";

/** True if the sampling leaves out tokens. A missing parameter may be a default of the server, and is none here. */
export function isCut({ top_p, top_k, min_p }: Sampling): boolean {
  return (top_p ?? 1) < 1 || topKOf({ top_k }) > 0 || (min_p ?? 0) > 0;
}

/** 0: none. */
export function topKOf({ top_k }: Pick<Sampling, "top_k">): number {
  return Math.max(0, top_k ?? 0);
}

/** Sets are as large as `top_k`, and ties make them larger. More than this is no cut. */
const largestSet = 65_536;
const largestId = 2 ** 31 - 1;

/** Returns the ids if they are a set of ids with the sampled one among them. */
export function checkedSupport(sampled: number, ids: readonly unknown[]): TokenSupport {
  if (ids.length === 0 || ids.length > largestSet) return "misfit";
  const seen = new Set<number>();
  for (const id of ids) if (typeof id === "number" && Number.isInteger(id) && id >= 0 && id <= largestId) seen.add(id);
  return seen.size === ids.length && seen.has(sampled) ? [...seen] : "misfit";
}

/** An entry of a list of the likeliest tokens. `logprob` null: none was measured, because the sampling left the token out. */
export type ListedToken = { id: number; logprob: number | null };

/** float32 logprobs of a set add up to 1 within this. */
const sumTolerance = 1e-3;
/** Sums of less than this are the noise of adding float32 numbers. */
const noise = 2e-6;

/**
 * Returns the kept tokens of a list of the likeliest ones, after the sampling's cut. The list
 * is whole if it goes on with a token that was left out, or if `top_k` tokens are in it and no tied one can be missing.
 */
export function listedSupport(sampled: number, listed: readonly ListedToken[], top_k: number): TokenSupport {
  const kept = listed.filter(({ logprob }) => isMeasured(logprob));
  const probabilities = kept.map(({ logprob }) => Math.exp(logprob ?? Number.NEGATIVE_INFINITY));
  const sum = probabilities.reduce((before, one) => before + one, 0);
  const goesOn = kept.length < listed.length;
  const least = Math.min(...probabilities);
  // A tied token would have the probability of the least one.
  const isFull = top_k > 0 && kept.length >= top_k && least > 2 * noise && 1 - sum < least / 2;
  if (!goesOn && !isFull) return sum > 1 + sumTolerance ? "misfit" : "cut_short";
  if (!(Math.abs(sum - 1) <= sumTolerance)) return "misfit";
  return checkedSupport(
    sampled,
    kept.map(({ id }) => id),
  );
}
