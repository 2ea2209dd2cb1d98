/** A model that speaks for the user, for tasks whose agent and user talk in turns. */
import { z } from "zod";

/** Bounds what one rollout may ask of the user's model. */
const mostTurns = 200;
/** Bytes of a system prompt that no policy document reaches. */
const longestInstructions = 200_000;

export const SimulatedUser = z.strictObject({
  model: z
    .string()
    .min(1)
    .max(200)
    .nullable()
    .default(null)
    .describe("the model that speaks for the user, by a name that an engine of the run serves; left out: the run's own"),
  instructions: z
    .string()
    .min(1)
    .max(longestInstructions)
    .describe("its system prompt: who the user is, what it wants, and what it tells when it is asked"),
  opening: z
    .string()
    .min(1)
    .max(longestInstructions)
    .optional()
    .describe(
      "what it is given first, for the message with which the conversation begins: that stands behind the task's instruction then; left out: the instruction is the user's first message",
    ),
  max_turns: z.number().int().positive().max(mostTurns).default(30).describe("messages of the user, the first one among them"),
  temperature: z.number().min(0).max(2).optional().describe("left out: the engine's own"),
  stop: z
    .array(z.string().min(1).max(200))
    .min(1)
    .max(20)
    .optional()
    .describe("words that end the conversation: a message of the user with one of them does not reach the agent"),
});
export type SimulatedUser = z.infer<typeof SimulatedUser>;
