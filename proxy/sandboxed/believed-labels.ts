/**
 * What a client says of a call, as far as its session believes it. A kind of call may be left out of training, so a
 * sandboxed agent does not choose it: only the kinds count that its harness is known to make (`known_classes`), and
 * anything else is the main agent's work. What was read is on the record beside it.
 */
import type { CallLabels } from "../../dialects/dialect.ts";
import type { SessionSpec } from "../../schema/session-log.ts";

export function believedLabels(
  { sandboxed, known_classes }: Pick<SessionSpec, "sandboxed" | "known_classes">,
  said: CallLabels,
): CallLabels {
  const known = known_classes ?? (sandboxed ? [] : null);
  if (known === null) return said;
  const agent = known.includes("sub_agent") ? said.agent : "main";
  const work = agent === "main" ? "main" : "sub_agent";
  const request_class = known.includes(said.request_class) ? said.request_class : work;
  if (agent === said.agent && request_class === said.request_class) return said;
  return { agent, request_class, labels: { ...said.labels, read_as: said.request_class } };
}
