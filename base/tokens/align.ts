/** Which tokens of two lists belong together: the fewest insertions and deletions that make one of the other. */
import { commonPrefix, type TokenIds } from "./prefix.ts";

/** `a[0]` to `a[1]` (exclusive) of the one and `b[0]` to `b[1]` of the other: equal, or in each other's place. */
export type Stretch = { same: boolean; a: [number, number]; b: [number, number] };

/**
 * Stretches that cover both lists in order. Where more than `limit` tokens would have to change, what lies between the
 * common beginning and the common end is one stretch: memory grows with the square of the changes.
 */
export function alignTokens(a: TokenIds, b: TokenIds, limit = 1000): Stretch[] {
  const start = commonPrefix(a, b);
  const most = Math.min(a.length, b.length) - start;
  let end = 0;
  while (end < most && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const middle = shortestEdit(slice(a, start, a.length - end), slice(b, start, b.length - end), limit);
  const stretches: Stretch[] = [];
  push(stretches, true, start, start);
  for (const { same, a: inA, b: inB } of middle) push(stretches, same, inA, inB);
  push(stretches, true, end, end);
  return stretches;
}

function slice(ids: TokenIds, from: number, to: number): number[] {
  return Array.prototype.slice.call(ids, from, to) as number[];
}

/** Appends `inA` and `inB` further tokens, to the last stretch where that is of the same kind. */
function push(stretches: Stretch[], same: boolean, inA: number, inB: number): void {
  if (inA === 0 && inB === 0) return;
  const last = stretches.at(-1);
  if (last?.same === same) [last.a[1], last.b[1]] = [last.a[1] + inA, last.b[1] + inB];
  else {
    const [fromA, fromB] = [last?.a[1] ?? 0, last?.b[1] ?? 0];
    stretches.push({ same, a: [fromA, fromA + inA], b: [fromB, fromB + inB] });
  }
}

type Step = { same: boolean; a: number; b: number };

/** Myers' greedy algorithm: how far each diagonal gets with 0, 1, 2 … changes; then back along the way that arrived. */
function shortestEdit(a: number[], b: number[], limit: number): Step[] {
  const [n, m] = [a.length, b.length];
  if (n === 0 || m === 0) return [{ same: false, a: n, b: m }];
  const most = Math.min(n + m, limit);
  const reached: Int32Array[] = [];
  const furthest = new Int32Array(2 * most + 3);
  for (let changes = 0; changes <= most; changes++) {
    reached.push(furthest.slice());
    for (let diagonal = -changes; diagonal <= changes; diagonal += 2) {
      const at = diagonal + most + 1;
      const isDown = diagonal === -changes || (diagonal !== changes && (furthest[at - 1] as number) < (furthest[at + 1] as number));
      let x = isDown ? (furthest[at + 1] as number) : (furthest[at - 1] as number) + 1;
      while (x < n && x - diagonal < m && a[x] === b[x - diagonal]) x++;
      furthest[at] = x;
      if (x >= n && x - diagonal >= m) return walkBack(n, m, reached, most);
    }
  }
  return [{ same: false, a: n, b: m }];
}

function walkBack(n: number, m: number, reached: Int32Array[], most: number): Step[] {
  const steps: Step[] = [];
  let [x, y] = [n, m];
  for (let changes = reached.length - 1; changes >= 0; changes--) {
    const furthest = reached[changes] as Int32Array;
    const diagonal = x - y;
    const at = diagonal + most + 1;
    const isDown = diagonal === -changes || (diagonal !== changes && (furthest[at - 1] as number) < (furthest[at + 1] as number));
    const before = changes === 0 ? 0 : isDown ? (furthest[at + 1] as number) : (furthest[at - 1] as number);
    const startX = changes === 0 ? 0 : isDown ? before : before + 1;
    const kept = x - startX;
    if (kept > 0) steps.push({ same: true, a: kept, b: kept });
    if (changes > 0) steps.push({ same: false, a: isDown ? 0 : 1, b: isDown ? 1 : 0 });
    [x, y] = [before, before - (diagonal + (isDown ? 1 : -1))];
  }
  return steps.reverse();
}
