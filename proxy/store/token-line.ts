/** A line of `vocabulary/<tokenizer fingerprint>.jsonl` in a run's folder: the text of one token, when it was first seen. */
import { z } from "zod";

export const vocabularyFolder = "vocabulary";

/** `bytes` stand in the place of `text` where they are a part of a character. */
export const TokenLine = z.strictObject({
  id: z.number().int().nonnegative(),
  text: z.string().optional(),
  bytes: z.array(z.number().int().min(0).max(255)).optional(),
});
export type TokenLine = z.infer<typeof TokenLine>;
