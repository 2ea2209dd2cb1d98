/** Rules that choose the engines of a call; the first rule that fits decides. */
import { z } from "zod";
import { toMatch } from "../../base/schema/complaints/to-match.ts";
import { Policy } from "../../base/schema/policy.ts";
import { RequestClass } from "../../base/schema/session-spec.ts";

const Names = z.union([z.string(), z.array(z.string()).min(1)]);

export const EngineRoute = z.strictObject({
  model: Names.optional().describe("globs of the model name that the harness asked for"),
  agent: Names.optional().describe("globs of the agent: `main`, or the harness's own id of a sub-agent"),
  request_class: Names.refine(
    (globs) => [globs].flat().every((glob) => RequestClass.options.some((name) => toMatch(glob)(name))),
    `expected a kind of call: ${RequestClass.options.join(", ")}`,
  )
    .optional()
    .describe("main, title, topic, summary, compaction, quota, sub_agent …"),
  engine: Names.optional().describe("names of the engines that may take the call; absent: all of them"),
  engine_model: z.string().optional().describe("the model that the engine is asked for, such as the name of a LoRA adapter"),
  sandboxed: z
    .boolean()
    .optional()
    .describe(
      "the agents of sandboxes may be led by it too, by what they name, also to engines that are not of their policy; without it they reach their own model only",
    ),
  policy: Policy.optional().describe("the policy of this model, where it is not the engine's own"),
});
export type EngineRoute = z.infer<typeof EngineRoute>;

export type RouteQuestion = { model: string; agent: string; request_class: RequestClass };

export function routeFor(routes: readonly EngineRoute[], question: RouteQuestion): EngineRoute | null {
  const holds = (globs: string | string[] | undefined, value: string): boolean =>
    globs === undefined || [globs].flat().some((glob) => toMatch(glob)(value));
  return (
    routes.find(
      (route) =>
        holds(route.model, question.model) && holds(route.agent, question.agent) && holds(route.request_class, question.request_class),
    ) ?? null
  );
}
