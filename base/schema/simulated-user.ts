/** A model that speaks for the user, for tasks whose agent and user talk in turns. */
import { z } from "zod";

/** Bounds what one rollout may ask of the user's model. */
const mostTurns = 200;
/** Most bytes of the system prompt: policy documents are shorter. */
const longestInstructions = 200_000;

export const SimulatedUser = z.strictObject({
  model: z
    .string()
    .min(1)
    .max(200)
    .nullable()
    .default(null)
    .describe("the model that speaks for the user: a name that an engine of the run serves; left out: the run's own model"),
  instructions: z
    .string()
    .min(1)
    .max(longestInstructions)
    .describe("its system prompt: who the user is, what the user wants, and what the user tells when asked"),
  opening: z
    .string()
    .min(1)
    .max(longestInstructions)
    .optional()
    .describe(
      "its first prompt. Its answer follows the task's instruction, and both are the agent's first message; left out: the instruction is the user's first message",
    ),
  max_turns: z.number().int().positive().max(mostTurns).default(30).describe("most messages of the user, the first one included"),
  temperature: z.number().min(0).max(2).optional().describe("left out: the engine's own"),
  stop: z
    .array(z.string().min(1).max(200))
    .min(1)
    .max(20)
    .optional()
    .describe("words that end the conversation: if the user's message has one, it does not reach the agent"),
});
export type SimulatedUser = z.infer<typeof SimulatedUser>;
