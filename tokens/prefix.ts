/** Where two lists part. Everything token-faithful rests on these comparisons, so they are exact and allocate nothing. */

/** Token ids as the wire brings them (`number[]`) or as memory keeps them (`Int32Array`). */
export type TokenIds = ArrayLike<number>;

/** How many leading items `a` and `b` share. `from` items are known to be equal already and are not compared again. */
export function commonPrefix(a: TokenIds, b: TokenIds, from = 0): number {
  const limit = Math.min(a.length, b.length);
  let at = Math.min(from, limit);
  while (at < limit && a[at] === b[at]) at++;
  return at;
}

/** Does `ids` begin with all of `prefix`? */
export function startsWith(ids: TokenIds, prefix: TokenIds): boolean {
  return prefix.length <= ids.length && commonPrefix(ids, prefix) === prefix.length;
}

/**
 * Does `ids` continue a call exactly, that is, begin with its prompt and then all that it sampled?
 * The two are compared in place, for joining them would copy the whole context at every call.
 */
export function continuesExactly(ids: TokenIds, prompt: TokenIds, sampled: TokenIds): boolean {
  if (ids.length < prompt.length + sampled.length || !startsWith(ids, prompt)) return false;
  for (let at = 0; at < sampled.length; at++) if (ids[prompt.length + at] !== sampled[at]) return false;
  return true;
}
