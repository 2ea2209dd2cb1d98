import { messageOf } from "../errors.ts";
import type { GraderSampler } from "../graders/grader.ts";
import type { RolloutPlan } from "./rollout-plan.ts";
import type { RunSetup } from "./run-setup.ts";

/**
 * A session of its own for the grader of a rollout, sealed with the scope and never trained. One
 * that cannot be sealed costs no verdict.
 */
export async function openSampler(
  { proxy, onProgress }: RunSetup,
  { rollout_id, task }: RolloutPlan,
): Promise<GraderSampler & AsyncDisposable> {
  const { session, key } = await proxy.openSession({ purpose: "judge", task_id: task.task_id, labels: { grades: rollout_id } });
  return {
    url: proxy.url,
    key,
    session_id: session.id,
    model: proxy.facts.models[0] ?? "model",
    [Symbol.asyncDispose]: () =>
      proxy.sessions.close(session, "the rollout is graded").catch((error: unknown) => {
        onProgress({ type: "note", text: `${rollout_id}: the grader's session ${session.id} could not be sealed: ${messageOf(error)}` });
      }),
  };
}
