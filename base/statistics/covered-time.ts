/** What intervals of time cover together. */

/** Unix milliseconds. */
export type CoveredSpan = { from: number; to: number };

export class CoveredTime {
  /** Both in order: spans that neither meet nor touch. */
  readonly #from: number[];
  readonly #to: number[];

  /** `spans`: what another one had. */
  constructor(spans: readonly CoveredSpan[] = []) {
    this.#from = spans.map(({ from }) => from);
    this.#to = spans.map(({ to }) => to);
  }

  add(from: number, to: number): void {
    const first = countBelow(this.#to, (end) => end < from);
    const next = countBelow(this.#from, (begin) => begin <= to);
    const joined = next > first;
    const [begin, end] = joined ? [Math.min(from, this.#from[first] ?? from), Math.max(to, this.#to[next - 1] ?? to)] : [from, to];
    this.#from.splice(first, next - first, begin);
    this.#to.splice(first, next - first, end);
  }

  get size(): number {
    return this.#from.length;
  }

  get spans(): CoveredSpan[] {
    return this.#from.map((from, at) => ({ from, to: this.#to[at] ?? from }));
  }
}

/** Counts the entries for which `isBelow` holds. They stand first in `all`. */
function countBelow(all: readonly number[], isBelow: (one: number) => boolean): number {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBelow(all[middle] as number)) low = middle + 1;
    else high = middle;
  }
  return low;
}
