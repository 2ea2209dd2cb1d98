/** Finds the answer in a text, by the conventions of GSM8K and MATH. */

/** Returns what the last `\boxed{…}` holds; null: there is none, or its braces are not closed. */
export function boxedIn(text: string): string | null {
  const mark = "\\boxed{";
  const from = text.lastIndexOf(mark);
  if (from === -1) return null;
  let depth = 1;
  for (let at = from + mark.length; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "{") depth += 1;
    else if (text[at] === "}") depth -= 1;
    if (depth === 0) return text.slice(from + mark.length, at);
  }
  return null;
}

/** Returns what follows `####` in the last line that begins with it; null: no line does. */
export function hashedIn(text: string): string | null {
  const line = text.split("\n").findLast((one) => one.startsWith("####"));
  return line === undefined ? null : line.slice("####".length).trim();
}
