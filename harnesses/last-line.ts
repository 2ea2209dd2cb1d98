/** What a person reads of a long error output; a harness may put a whole page into one line. */
const longestLine = 2000;

/** The last line that says something; null where none does. */
export function lastLine(text: string): string | null {
  return text.trim().split("\n").at(-1)?.trim().slice(0, longestLine) || null;
}
