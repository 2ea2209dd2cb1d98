/** Facts as name and value. */
import type { Meaning } from "../../base/schema/reasons/meaning.ts";
import { cutText, type Markup, markup } from "./markup.ts";

/** Characters of one value: what a program printed is bounded on record, and a plug-in's evidence is not. */
const longest = 20_000;

export function factRows(rows: readonly [string, string][]): Markup {
  return markup`<table class="facts">${rows.map(
    ([name, value]) =>
      markup`<tr><th>${name}</th><td>${value.includes("\n") ? markup`<pre>${cutText(value, longest)}</pre>` : cutText(value, longest)}</td></tr>`,
  )}</table>`;
}

/** What a word of our records means and what to do, for a hint; empty where the table does not have it. */
export function meaning(table: Readonly<Record<string, Meaning>>, word: string): string {
  const found = Object.hasOwn(table, word) ? table[word] : undefined;
  return found === undefined ? "" : `${found.what}${found.cure === null ? "" : ` To do: ${found.cure}.`}`;
}
