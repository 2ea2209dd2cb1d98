/** "Did you mean …?": the word that was meant by one that is none. */

/** Longer ones are no typing mistakes, and comparing takes their product. */
const maxLength = 64;

/** The nearest of the words where a third of it or less differs; null where none is near. */
export function nearestWord(word: string, words: Iterable<string>): string | null {
  let [best, least]: [string | null, number] = [null, Number.POSITIVE_INFINITY];
  for (const candidate of words) {
    const edits = editsOf(word, candidate);
    if (edits < least && edits <= Math.max(1, Math.floor(candidate.length / 3))) [best, least] = [candidate, edits];
  }
  return best;
}

/** Comparing takes the product of two lengths: ten thousand words of forty letters are compared in a quarter of a second. */
const mostCompared = 10_000;

/** All of the words, nearest first. What is too long or too much to be compared comes last, as it stands. */
export function nearestWords(word: string, words: Iterable<string>): string[] {
  const all = [...words];
  const near = all.slice(0, mostCompared).map((candidate) => ({ candidate, edits: editsOf(word, candidate) }));
  const sorted = near.toSorted((a, b) => a.edits - b.edits).map(({ candidate }) => candidate);
  return [...sorted, ...all.slice(mostCompared)];
}

/** More than any that are near where one is too long. */
function editsOf(word: string, candidate: string): number {
  if (word.length > maxLength || candidate.length > maxLength) return Number.MAX_SAFE_INTEGER;
  return editsBetween(word.toLowerCase(), candidate.toLowerCase());
}

/** As a part of a sentence; empty where none is near. */
export function didYouMean(word: string, words: Iterable<string>): string {
  const nearest = nearestWord(word, words);
  return nearest === null ? "" : ` (did you mean ${nearest}?)`;
}

/** Letters added, left out, changed, or swapped with the next one (the optimal string alignment distance). */
function editsBetween(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1;
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const edits = [(row[j - 1] ?? 0) + 1, (last[j] ?? 0) + 1, (last[j - 1] ?? 0) + change, ...(isSwap ? [(before[j - 2] ?? 0) + 1] : [])];
      row.push(Math.min(...edits));
    }
    [before, last] = [last, row];
  }
  return last[b.length] ?? 0;
}
