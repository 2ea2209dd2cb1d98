/** Which logprob belongs to which sampled id, where a server does not say it one to one. */
import { isLogprob } from "../../base/tokens/alignment.ts";

/** Servers write -9999 or the lowest float for NaN and minus infinity. Such a number is no measurement. */
const noLogprobBelow = -9_000;

export function isMeasured(logprob: unknown): logprob is number {
  return isLogprob(logprob) && logprob > noLogprobBelow;
}

/** The logprobs of `ids` from such entries; null for one that has none, and for all where the entries belong to something else. */
export function alignById(ids: readonly number[], entries: readonly { id: number; logprob: number }[]): (number | null)[] | null {
  return placeById(ids, entries)?.map((entry) => (isMeasured(entry?.logprob) ? entry.logprob : null)) ?? null;
}

/**
 * The entry of each of `ids`, from entries that are a subsequence of them (llama.cpp gives none inside a character of several
 * bytes, nor for the tokens of a stop string). An entry counts only where it can stand in one place alone; every other
 * id has null. null: the entries are no subsequence, so they belong to something else.
 */
export function placeById<Entry extends { id: number }>(ids: readonly number[], entries: readonly Entry[]): (Entry | null)[] | null {
  const first = earliest(ids, entries);
  if (first === null) return null;
  const last = earliest(ids.toReversed(), entries.toReversed())
    ?.map((at) => ids.length - 1 - at)
    .toReversed();
  const placed = new Array<Entry | null>(ids.length).fill(null);
  for (const [index, entry] of entries.entries()) {
    const at = first[index] as number;
    if (last?.[index] === at) placed[at] = entry;
  }
  return placed;
}

/** The first place of each entry, in order; null where one finds none. */
function earliest(ids: readonly number[], entries: readonly { id: number }[]): number[] | null {
  const places: number[] = [];
  let at = 0;
  for (const { id } of entries) {
    while (at < ids.length && ids[at] !== id) at++;
    if (at === ids.length) return null;
    places.push(at++);
  }
  return places;
}
