/** Shows facts as pairs of name and value. */
import type { Meaning } from "../../base/schema/reasons/meaning.ts";
import { cutText, type Markup, markup } from "./markup.ts";

/** Bounds the characters of one value. A plug-in's evidence has no bound in the record. */
const longest = 20_000;

export function factRows(rows: readonly [string, string][]): Markup {
  return markup`<table class="facts">${rows.map(
    ([name, value]) =>
      markup`<tr><th>${name}</th><td>${value.includes("\n") ? markup`<pre>${cutText(value, longest)}</pre>` : cutText(value, longest)}</td></tr>`,
  )}</table>`;
}

/** Returns a hint: what a word of our records means, and what to do. Empty if the table lacks the word. */
export function meaning(table: Readonly<Record<string, Meaning>>, word: string): string {
  const found = Object.hasOwn(table, word) ? table[word] : undefined;
  return found === undefined ? "" : `${found.what}${found.cure === null ? "" : ` To do: ${found.cure}.`}`;
}
