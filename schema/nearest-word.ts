/** "Did you mean …?": the word that was meant by one that is none. */

/** Longer ones are no typing mistakes, and comparing takes their product. */
const maxLength = 64;

/** The nearest of the words where a third of it or less differs; null where none is near. */
export function nearestWord(word: string, words: Iterable<string>): string | null {
  let [best, least]: [string | null, number] = [null, Number.POSITIVE_INFINITY];
  for (const candidate of words) {
    if (word.length > maxLength || candidate.length > maxLength) continue;
    const edits = editsBetween(word.toLowerCase(), candidate.toLowerCase());
    if (edits < least && edits <= Math.max(1, Math.floor(candidate.length / 3))) [best, least] = [candidate, edits];
  }
  return best;
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
