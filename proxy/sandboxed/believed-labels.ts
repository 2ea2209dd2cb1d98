/**
 * Decides which labels of a call its session believes. Some kinds of calls are left out of training, so a sandboxed agent must
 * not choose the kind. Only the kinds count that its harness is known to make (`known_classes`). Any other call is work of the
 * main agent, and its label `read_as` keeps the kind that the request showed.
 */

import type { SessionSpec } from "../../base/schema/session-spec.ts";
import type { CallLabels } from "../dialects/index.ts";

export function believedLabels(
  { sandboxed, known_classes }: Pick<SessionSpec, "sandboxed" | "known_classes">,
  claimed: CallLabels,
): CallLabels {
  const known = known_classes ?? (sandboxed ? [] : null);
  if (known === null) return claimed;
  const agent = known.includes("sub_agent") ? claimed.agent : "main";
  const work = agent === "main" ? "main" : "sub_agent";
  const request_class = known.includes(claimed.request_class) ? claimed.request_class : work;
  if (agent === claimed.agent && request_class === claimed.request_class) return claimed;
  return { agent, request_class, labels: { ...claimed.labels, read_as: claimed.request_class } };
}
