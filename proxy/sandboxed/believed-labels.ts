/**
 * What a client says of a call, as far as its session believes it. A kind of call may be left out of training, so a
 * sandboxed agent does not choose it: only the kinds count that its harness is known to make (`known_classes`), and
 * anything else is the main agent's work. What was read is on the record beside it.
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
