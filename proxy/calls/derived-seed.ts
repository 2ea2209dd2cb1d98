/** A seed that follows from another one and from what it is for. */
import { hashOf } from "../../base/schema/ids.ts";

/** Google's API takes signed integers of 32 bits, and llama.cpp draws a seed of its own for 2^32 - 1. */
const seeds = 2 ** 31 - 1;

/** From 0. Equal parts give equal seeds on every machine. */
export function derivedSeed(...parts: readonly (string | number | null)[]): number {
  return Number.parseInt(hashOf(parts).slice(0, 12), 16) % seeds;
}
