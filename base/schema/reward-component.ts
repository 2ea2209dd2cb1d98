/** One named number that a grader or trainer gave to a rollout or a part of it. */
import { z } from "zod";

export const RewardComponent = z
  .strictObject({
    scope: z.enum(["rollout", "agent", "trace", "call", "token"]),
    /** null for the rollout; else an agent, a trace id, a call id, or `<call id>:<index in what it sampled>` for a token. */
    target: z.string().nullable(),
    name: z.string(),
    /** null: it could not be measured. */
    value: z.number().nullable(),
    /** Its share in a weighted total; null: it is reported and counts in no total. */
    weight: z.number().nullable(),
  })
  .refine(({ scope, target }) => (scope === "rollout") === (target === null), {
    message: "a reward component of a rollout has no target, one of another scope has",
    path: ["target"],
  })
  .refine(({ scope, target }) => scope !== "token" || /:\d+$/.test(target ?? ""), {
    message: "the target of a token is <call id>:<index in what it sampled>",
    path: ["target"],
  });
export type RewardComponent = z.infer<typeof RewardComponent>;
