/**
 * How much of a sandboxed rollout may be said beside its work. Titles and the like are not trained, and it is by the
 * words of a request that they are known: beyond a share of its sampled tokens they are taken for work, all of them. So an
 * agent that hides its turns among side calls hides next to nothing, and cannot gain by hiding more.
 */
import { type RequestClass, type SessionSpec, workClasses } from "../../base/schema/session-spec.ts";
import type { CallHistory } from "../log/call-history.ts";

/** A title is some ten tokens of a rollout's thousands; a harness that asks whether it goes in circles does so every thirty turns. */
const mostOfTokens = 0.1;

/** The calls, those that claim too much as what they then are: their agent's work. */
export function withinSideShare(
  calls: CallHistory[],
  { sandboxed, train_classes }: Pick<SessionSpec, "sandboxed" | "train_classes">,
): CallHistory[] {
  if (!sandboxed) return calls;
  const isAside = ({ begun }: CallHistory): boolean =>
    !workClasses.includes(begun.request_class) && !train_classes.includes(begun.request_class);
  const aside = sampledTokens(calls.filter(isAside));
  if (aside <= mostOfTokens * sampledTokens(calls)) return calls;
  return calls.map((call) => (isAside(call) ? { ...call, begun: asWork(call.begun) } : call));
}

function asWork(begun: CallHistory["begun"]): CallHistory["begun"] {
  const request_class: RequestClass = begun.agent === "main" ? "main" : "sub_agent";
  return { ...begun, request_class, labels: { ...begun.labels, read_as: begun.request_class } };
}

function sampledTokens(calls: CallHistory[]): number {
  return calls.reduce((sum, { finished }) => sum + (finished?.sampled_ids?.length ?? finished?.usage.sampled_tokens ?? 0), 0);
}
