/** A line of `vocabulary/<tokenizer fingerprint>.jsonl` in a run's folder: the text of one token, when it was first seen. */
import { isUtf8 } from "node:buffer";
import { z } from "zod";

export const vocabularyFolder = "vocabulary";

/** `bytes` stand in the place of `text` where they are a part of a character. */
export const TokenLine = z.strictObject({
  id: z.number().int().nonnegative(),
  text: z.string().optional(),
  bytes: z.array(z.number().int().min(0).max(255)).optional(),
});
export type TokenLine = z.infer<typeof TokenLine>;

/** The longest tokens are runs of some hundred spaces. A longer text is none of a token, and is left out. */
const maxTextBytes = 1_024;

/** null: too long to be a token, or empty. */
export function tokenLineOf(id: number, bytes: Uint8Array): TokenLine | null {
  if (bytes.length === 0 || bytes.length > maxTextBytes) return null;
  return isUtf8(bytes) ? { id, text: Buffer.from(bytes).toString("utf8") } : { id, bytes: [...bytes] };
}
