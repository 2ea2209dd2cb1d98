/**
 * The one way from text to a page: what is invisible is written out, then `hono` escapes it. Records of agents are
 * hostile, so a string that is put into a page can be nothing but text.
 */
import { html } from "hono/html";
import { visibleText } from "../text/visible-text.ts";

/** Markup of ours; only `markup` makes it. */
export type Markup = { readonly isEscaped: true; toString(): string };

type MarkupValue = Markup | string | number | boolean | null | undefined | readonly MarkupValue[];

export function markup(strings: TemplateStringsArray, ...values: MarkupValue[]): Markup {
  // Without a promise among the values `html` gives its string at once.
  return html(strings, ...values.map(shown)) as unknown as Markup;
}

function shown(value: MarkupValue): unknown {
  if (typeof value === "string") return visibleText(value);
  if (Array.isArray(value)) return value.map((one: MarkupValue) => shown(one));
  // `html` leaves booleans out.
  return value ?? "";
}

export const nothing = markup``;

/** A text of at most so many characters, with the number of those left out: a page holds no line of 10 MB. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most).toWellFormed()} … (${(text.length - most).toLocaleString("en")} more characters)`;
}
