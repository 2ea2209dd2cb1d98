/** Asks whose doing it is that services of a rollout do not answer, in a place of the line in which works are graded. */
import { reconstruct } from "../reconstruct/index.ts";
import type { PreparedRollout } from "./prepare.ts";
import type { RolloutPlan } from "./rollout-plan.ts";
import type { RunSetup } from "./run-setup.ts";
import { areAgentsDoing, type UnansweredService } from "./services/index.ts";

export function findDoing(setup: RunSetup, { task }: RolloutPlan, prepared: PreparedRollout, signal: AbortSignal) {
  return async (questions: readonly UnansweredService[]): Promise<boolean[]> => {
    if (questions.length === 0) return [];
    const { sandbox, session, another: create } = prepared;
    const { tool_runs: runs = [] } = reconstruct(await setup.proxy.sessions.store.read(session.id));
    return setup.slots.post.run(signal, () => areAgentsDoing(questions, { task, runs, sandbox, create }, signal));
  };
}
