/** The route of figures: of each policy step, and of an evaluation as a whole. */
import { z } from "zod";
import type { Evaluation, StepFigures } from "../figures/index.ts";
import { passReward } from "../figures/index.ts";
import { biasesOf, type ResultRow, type SetState } from "../ledger/index.ts";
import type { SetTallies } from "../set-tallies.ts";
import { defineRoute, type ServiceRoute } from "./route.ts";

/**
 * `steps_left_out`: earlier ones. `evaluation`: of a set of that purpose. `counted`: results in these figures; `expired`: results that
 * were removed, which are in them where this service had read them before.
 */
export type SetStepFigures = {
  set_id: string;
  steps: StepFigures[];
  steps_left_out: number;
  evaluation: SetEvaluation | null;
  counted: number;
  expired: number;
};

/** `open`: rollouts that are not over; while there are some, the figures are of those that were quick. */
export type SetEvaluation = Evaluation & { open: number; biases: ResultRow["biases"] };

const FiguresQuery = z.strictObject({
  last: z.coerce.number().int().min(1).max(1_000).default(20).describe("policy steps at most, the latest ones"),
  pass: z.coerce.number().default(passReward).describe("a rollout of an evaluation passes with this reward or more"),
});

export function figureRoute(tallies: SetTallies): ServiceRoute {
  return defineRoute({
    method: "get",
    path: "/sets/:id/figures",
    roles: ["read"],
    title:
      "Figures of a set by policy step: each with its value, what it is made of, and the reason where it is unknown; of an evaluation pass@k",
    query: FiguresQuery,
    handle: async ({ param, query: { last, pass }, signal }, { ledger }): Promise<SetStepFigures> => {
      const set_id = param("id");
      // Read before the results: a rollout that ends in between counts as open. After them it would be in no number at all.
      const set = await ledger.set(set_id);
      const { steps: all, evaluation, counted } = await tallies.of(set_id, signal);
      const steps = all.latest(last);
      const said = evaluation && { ...evaluation.figures(pass), ...beside(set) };
      return { set_id, steps, steps_left_out: all.size - steps.length, evaluation: said, counted, expired: set.expired?.rollouts ?? 0 };
    },
  });
}

function beside({ rollouts, spec }: SetState): Pick<SetEvaluation, "open" | "biases"> {
  return { open: rollouts.held + rollouts.queued + rollouts.running, biases: biasesOf(spec) };
}
