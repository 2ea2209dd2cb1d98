/**
 * What harnesses, models and tools wrote is untrusted: an escape sequence in a tool result must not move the reader's
 * cursor, and a direction mark must not turn a line round. Everything invisible is written out.
 */

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this is about
const invisible = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export function visibleText(text: string): string {
  return text.replace(/\r\n/g, "\n").toWellFormed().replace(invisible, writeOut);
}

function writeOut(character: string): string {
  const code = character.charCodeAt(0);
  return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** The first `lines` lines and `characters` characters, with what is missing said in words. */
export function shortened(text: string, limit: { lines: number; characters: number }): string {
  const lines = text.split("\n");
  let kept = lines.slice(0, limit.lines).join("\n");
  if (kept.length > limit.characters) kept = kept.slice(0, limit.characters).toWellFormed();
  if (kept.length === text.length) return text;
  return `${kept.trimEnd()} … (${(text.length - kept.length).toLocaleString("en")} more characters)`;
}
