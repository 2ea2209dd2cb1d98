/** A sampled token as the engine tells it to a client that asked for logprobs. */
import { z } from "zod";

/** The most alternatives a token: OpenAI's and Google's limit, and what vLLM lists without a flag of its own. */
export const maxAlternatives = 20;

const TokenText = {
  /** As the engine prints this token alone: an engine may print nothing, or U+FFFD, for a part of a character. */
  text: z.string(),
  /** In UTF-8. null: the engine does not tell them, as with a part of a character in most engines. */
  bytes: z.array(z.number().int().min(0).max(255)).nullable(),
};

export const SampledToken = z.strictObject({
  ...TokenText,
  /** null: the engine gave none. */
  id: z.number().int().nonnegative().nullable(),
  /** In nats; null: it was not measured. */
  logprob: z.number().nullable(),
  /** The likeliest tokens in this place, in the engine's order: as many as were asked for, or fewer. */
  top: z.array(z.strictObject({ ...TokenText, logprob: z.number() })),
});
export type SampledToken = z.infer<typeof SampledToken>;
