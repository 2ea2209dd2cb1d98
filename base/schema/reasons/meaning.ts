/** What a word of our records means, in one sentence, and what a person can do about it; null where nothing is wrong. */
export type Meaning = { what: string; cure: string | null };

/** ` (its meaning: its cure)`, to stand behind the word; empty where the table does not have it. */
export function meaningOf(table: Record<string, Meaning>, word: string): string {
  const meaning = Object.hasOwn(table, word) ? table[word] : undefined;
  if (meaning === undefined) return "";
  return ` (${meaning.what.replace(/\.$/, "")}${meaning.cure === null ? "" : `: ${meaning.cure}`})`;
}

/** The words of a table, for a zod enum. */
export function wordsOf<Word extends string>(table: Record<Word, Meaning>): Word[] {
  return Object.keys(table) as Word[];
}
