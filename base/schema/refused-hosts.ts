/** What a sandbox's network refused, in words. */
import type { NetworkPhase, NetworkUse } from "./network.ts";
import { meaningOf } from "./reasons/meaning.ts";
import { refusals } from "./reasons/network.ts";

type RefusedHost = NetworkUse["refusals"][number];

/** Hosts that one message names. */
const mostNamed = 3;

/** For the end of a message on what failed in this phase: it may be why. Empty where nothing was refused. */
export function refusedHosts(use: NetworkUse, phase: NetworkPhase): string {
  const refused = use.refusals.filter((one) => one.phase === phase);
  if (refused.length === 0) return "";
  const named = refused.slice(0, mostNamed).map((one) => `${hostOf(one)} (${one.reason})`);
  const more = refused.length > mostNamed ? `, and ${refused.length - mostNamed} more` : "";
  return `; the sandbox's network refused ${named.join(", ")}${more}`;
}

/** Each line one refusal with its meaning. */
export function describeRefusal(refusal: RefusedHost): string {
  const { phase, times, reason } = refusal;
  return `${phase} ${hostOf(refusal)}, ${times} ×: ${reason}${meaningOf(refusals, reason)}`;
}

function hostOf({ host, port }: RefusedHost): string {
  return host === null ? "a request without a host" : `${host}${port === null ? "" : `:${port}`}`;
}
