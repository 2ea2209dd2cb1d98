/** What an agent answered in words: what is graded where a task leaves no files behind. */
import { textOf } from "../schema/message.ts";
import type { Trajectory } from "../schema/trajectory.ts";

/** Text of the main agent's last turn that reached its harness: empty where that has none, null where there is no such turn. */
export function answerOf({ calls, messages }: Trajectory): string | null {
  const answered = calls.filter(
    ({ agent, request_class, outcome, other_policy, output }) =>
      output !== null &&
      agent === "main" &&
      (request_class === "main" || request_class === "unknown") &&
      !other_policy &&
      (outcome === "delivered" || outcome === "partial"),
  );
  const last = answered.toSorted((a, b) => a.ordinal - b.ordinal).at(-1);
  const message = messages[last?.output ?? ""];
  return message ? textOf(message) : null;
}
