/** What a trainer sends around a weight update, to one proxy or to the service for all of them. */
import { z } from "zod";
import { Policy } from "../../base/schema/policy.ts";

/** Not above a day: nothing that a trainer waits for takes longer, and a timer that is too long for Node fires at once. */
export const Seconds = z.number().min(0).max(86_400);

export const engineVersion = z.string().optional().describe("the engine's own name of these weights, where it is another");

export const weightsVersion = z.string().min(1, "give the trainer's name for the weights");

const EngineNames = z.array(z.string()).min(1).optional().describe("default: those of the policy");

export const PauseModes = z.enum(["drain", "hold", "abort", "continue"]);

/** For mode `continue`. */
export const Otherwise = z
  .enum(["drain", "again"])
  .describe("of a call that cannot go on from its own tokens: it ends first (default), or is asked anew when the gate is open");

export const PauseBody = z.strictObject({
  engines: EngineNames,
  mode: PauseModes.default("drain"),
  otherwise: Otherwise.optional(),
  timeout_seconds: Seconds.default(60),
});

export const PolicyBody = Policy.extend({
  version: weightsVersion,
  step: Policy.shape.step.default(null),
  fence: z.string().optional(),
  engines: EngineNames,
  engine_version: engineVersion,
});
