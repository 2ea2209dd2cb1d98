/** The route of figures by policy step. */
import { z } from "zod";
import type { StepFigures } from "../rollouts/index.ts";
import { defineRoute, type ServiceRoute } from "./route.ts";
import type { SetTallies } from "./set-tallies.ts";

/** `steps_left_out`: earlier ones. */
export type SetStepFigures = { set_id: string; steps: StepFigures[]; steps_left_out: number };

const FiguresQuery = z.strictObject({
  last: z.coerce.number().int().min(1).max(1_000).default(20).describe("policy steps at most, the latest ones"),
});

export function figureRoute(tallies: SetTallies): ServiceRoute {
  return defineRoute({
    method: "get",
    path: "/sets/:id/figures",
    roles: ["read"],
    title: "Figures of a set by policy step: each with its value, what it is made of, and the reason where it is unknown",
    query: FiguresQuery,
    handle: async ({ param, query, signal }): Promise<SetStepFigures> => {
      const found = await tallies.of(param("id"), signal);
      const steps = found.latest(query.last);
      return { set_id: param("id"), steps, steps_left_out: found.size - steps.length };
    },
  });
}
