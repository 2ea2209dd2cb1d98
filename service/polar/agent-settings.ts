/**
 * `agent.settings` of Polar's. What is said there of calls holds for the whole set here, since the proxy samples them; what is
 * said of the program does not, for each harness is installed and configured by the service.
 */
import { z } from "zod";
import { Sampling } from "../../base/schema/message.ts";
import type { SetSpec } from "../ledger/index.ts";
import { none } from "./asks-nothing.ts";

const ModelKwargs = z.strictObject({
  ...Sampling.pick({ temperature: true, top_p: true, max_tokens: true, stop: true, seed: true }).shape,
  extra_body: z.record(z.string(), z.unknown()).optional(),
});

export const AgentSettings = z.strictObject({
  version: none("a harness has the version that the service installs (docs/harnesses.md): leave it out"),
  step_limit: z.number().int().min(0).optional().describe("calls that a session may begin"),
  model_kwargs: ModelKwargs.optional().describe("the sampling of each call"),
  cost_limit: none("calls have no price here: limit them by step_limit"),
  response_token_budget: none(
    "no budget counts what tools print: limit calls by step_limit, and the tokens of a call by model_kwargs.max_tokens",
  ),
  reasoning_effort: z.string().optional().describe("the effort of each call"),
});
export type AgentSettings = z.infer<typeof AgentSettings>;

export function setOptionsOf({ step_limit, model_kwargs = {}, reasoning_effort }: AgentSettings): Pick<SetSpec, "budgets" | "sampling"> {
  const { extra_body = {}, ...named } = model_kwargs;
  const sampling = { ...extra_body, ...named, ...(reasoning_effort && { reasoning_effort }) };
  return {
    ...(step_limit && { budgets: { max_turns: step_limit } }),
    ...(Object.keys(sampling).length > 0 && { sampling }),
  };
}
