/**
 * What harnesses, models and tools wrote is untrusted: an escape sequence in a tool result must not move the reader's
 * cursor, and a direction mark must not turn a line round. Everything invisible is written out.
 */

/** All but line ends, tabs, and the two signs that only choose between a character's text and picture forms. */
const invisible = /(?!\n|\t|\ufe0e|\ufe0f)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

export function visibleText(text: string): string {
  return text.replace(/\r\n/g, "\n").toWellFormed().replace(invisible, writeOut);
}

function writeOut(character: string): string {
  const code = character.codePointAt(0) as number;
  const digits = code.toString(16);
  if (code < 0x100) return `\\x${digits.padStart(2, "0")}`;
  return code < 0x1_0000 ? `\\u${digits.padStart(4, "0")}` : `\\u{${digits}}`;
}

/** The first `lines` lines and `characters` characters, followed by a note on the rest. */
export function shortened(text: string, limit: { lines: number; characters: number }): string {
  const lines = text.split("\n");
  let kept = lines.slice(0, limit.lines).join("\n");
  if (kept.length > limit.characters) kept = kept.slice(0, limit.characters).toWellFormed();
  if (kept.length === text.length) return text;
  return `${kept.trimEnd()} … (${(text.length - kept.length).toLocaleString("en")} more characters)`;
}
