/** The route on which a trainer holds its recomputed logprobs against what is stored of its rollouts. */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { Trajectory } from "../../base/schema/trajectory.ts";
import { Drift, type DriftSummary, TrainerLogprobs } from "../../reconstruct/index.ts";
import { getPacked } from "../blobs/index.ts";
import type { ServiceParts } from "../service-parts.ts";
import { defineRoute, type ServiceRoute } from "./route.ts";

/** Each is read whole, one after another: a second or two for a batch of a training step. */
const mostRollouts = 2_000;

const ToldCall = TrainerLogprobs.extend({ rollout_id: TrainerLogprobs.shape.rollout_id.unwrap().unwrap() });

const DriftQuery = z.strictObject({
  tolerance: z.coerce
    .number()
    .min(0)
    .max(1_000)
    .default(0.05)
    .describe("nats: the largest difference that passes; bfloat16 needs about 0.05"),
});

export function driftRoute({ blobs }: Pick<ServiceParts, "blobs">): ServiceRoute {
  return defineRoute({
    method: "post",
    path: "/sets/:id/drift",
    roles: ["submit"],
    title:
      "Holds logprobs that a trainer recomputed, one call a line, against the stored trajectories of rollouts that are over: how far each call is off, and the cause that the record shows. Nothing is kept",
    lines: ToldCall,
    query: DriftQuery,
    handle: async ({ param, lines, query: { tolerance }, signal }, { ledger }): Promise<DriftSummary> => {
      const drift = new Drift(tolerance, invalid);
      const rollouts = new Set<string>();
      for (const one of lines as z.infer<typeof ToldCall>[]) {
        drift.tell(one);
        rollouts.add(one.rollout_id);
      }
      if (rollouts.size > mostRollouts)
        throw invalid(`there are calls of ${rollouts.size} rollouts: send those of ${mostRollouts} at most`);
      for (const rollout of rollouts) {
        signal.throwIfAborted();
        const payload = (await ledger.result(param("id"), rollout))?.payload ?? null;
        if (payload !== null) drift.add(Trajectory.parse(readJson(await getPacked(blobs, payload))));
      }
      return drift.summary;
    },
  });
}

function invalid(message: string): AlidadeError {
  return new AlidadeError("request_invalid", message, { param: "logprobs" });
}
