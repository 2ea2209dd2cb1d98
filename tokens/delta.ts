/**
 * A list stored as what is new after the first `base_len` items of another call's list. A conversation grows at its
 * end, so a session's log grows with its tokens and not with calls × prompt length.
 */
import { AlidadeError } from "../errors.ts";

export type Delta<T> = { base_call_id: string | null; base_len: number; new: T[] };

/**
 * `items` against `base`, the list of another call. Any base is right, the one with the longest shared prefix is the
 * smallest. `same` says when two items are equal; tokens need nothing but their value.
 */
export function encodeDelta<T>(
  items: ArrayLike<T>,
  base: { call_id: string; items: ArrayLike<T> } | null,
  same: (a: T, b: T) => boolean = Object.is,
): Delta<T> {
  const shared = base === null ? 0 : sharedLength(items, base.items, same);
  // A base that shares nothing would only be a pointer to follow.
  if (base === null || shared === 0) return { base_call_id: null, base_len: 0, new: Array.from(items) };
  return { base_call_id: base.call_id, base_len: shared, new: Array.prototype.slice.call(items, shared) as T[] };
}

/** The whole list again. `base` is the list of `delta.base_call_id`; throws `store_error` where it cannot be that list. */
export function decodeDelta<T>(delta: Delta<T>, base: ArrayLike<T> | null): T[] {
  if (delta.base_call_id === null) return delta.new.slice();
  if (base === null)
    throw new AlidadeError("store_error", `The list stored against call ${delta.base_call_id} cannot be read: that call is missing.`);
  if (delta.base_len > base.length)
    throw new AlidadeError(
      "store_error",
      `A list keeps ${delta.base_len} items of call ${delta.base_call_id}, which has only ${base.length}: the log is damaged.`,
      { param: "base_len" },
    );
  const items = Array.prototype.slice.call(base, 0, delta.base_len) as T[];
  for (const item of delta.new) items.push(item);
  return items;
}

function sharedLength<T>(a: ArrayLike<T>, b: ArrayLike<T>, same: (a: T, b: T) => boolean): number {
  const limit = Math.min(a.length, b.length);
  let at = 0;
  while (at < limit && same(a[at] as T, b[at] as T)) at++;
  return at;
}
