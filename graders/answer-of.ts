/** What an agent answered in words: what is graded where a task leaves no files behind. */
import { textOf } from "../base/schema/message.ts";
import type { CallRecord, Trajectory } from "../base/schema/trajectory.ts";

/** Text of the main agent's last turn that reached its harness: empty where that has none, null where there is no such turn. */
export function answerOf(trajectory: Trajectory): string | null {
  const message = trajectory.messages[answeredCalls(trajectory).at(-1)?.output ?? ""];
  return message ? textOf(message) : null;
}

/** The main agent's own calls whose turns reached its harness, in their order. */
export function answeredCalls({ calls }: Pick<Trajectory, "calls">): CallRecord[] {
  const answered = calls.filter(
    ({ agent, request_class, outcome, other_policy, output }) =>
      output !== null &&
      agent === "main" &&
      (request_class === "main" || request_class === "unknown") &&
      !other_policy &&
      (outcome === "delivered" || outcome === "partial"),
  );
  return answered.toSorted((a, b) => a.ordinal - b.ordinal);
}

/** What was said to a person: the texts of these turns that call no tool. */
export function saidTexts({ calls, messages }: Pick<Trajectory, "calls" | "messages">): string[] {
  const turns = answeredCalls({ calls }).flatMap(({ output }) => messages[output ?? ""] ?? []);
  return turns.filter(({ parts }) => parts.every(({ type }) => type !== "tool_call")).map(textOf);
}
