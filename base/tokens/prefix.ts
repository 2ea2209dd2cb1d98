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
