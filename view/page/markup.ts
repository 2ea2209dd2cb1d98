/**
 * The only way to put text into a page. Invisible characters are spelled out, then `hono` escapes the text. Records of
 * agents may be hostile, so a string always stays text.
 */
import { html } from "hono/html";
import { visibleText } from "../text/visible-text.ts";

/** Our own markup. Only `markup` makes it. */
export type Markup = { readonly isEscaped: true; toString(): string };

type MarkupValue = Markup | string | number | boolean | null | undefined | readonly MarkupValue[];

export function markup(strings: TemplateStringsArray, ...values: MarkupValue[]): Markup {
  // `html` returns its string at once if no value is a promise.
  return html(strings, ...values.map(shown)) as unknown as Markup;
}

function shown(value: MarkupValue): unknown {
  if (typeof value === "string") return visibleText(value);
  if (Array.isArray(value)) return value.map((one: MarkupValue) => shown(one));
  // `html` omits booleans.
  return value ?? "";
}

export const nothing = markup``;

/** Cuts a text to at most so many characters, and says how many are left out. A line of 10 MB would block the page. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most).toWellFormed()} … (${(text.length - most).toLocaleString("en")} more characters)`;
}
