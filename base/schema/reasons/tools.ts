/** Why a tool run has no result from its service. */
import type { Meaning } from "./meaning.ts";

export const toolFailures = {
  died: { what: "The service took no connection, or broke off before it had answered.", cure: "look at the service's own log" },
  hung: { what: "The service did not answer in time.", cure: "raise `timeout_seconds` of the tool server" },
  too_large: { what: "The result has more bytes than the tool server may answer.", cure: "raise `max_result_bytes`" },
  invalid: { what: "The service answered something that is no result of a tool.", cure: "correct the service" },
  cut: { what: "The rollout ended before the service had answered.", cure: null },
} as const satisfies Record<string, Meaning>;
