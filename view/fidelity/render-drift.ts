/** How far a trainer's logprobs are from the recorded ones, for a person: the sums, then each cause with its worst calls. */

import { driftCauses } from "../../base/schema/reasons/drift.ts";
import type { AttributedDrift, DriftSummary } from "../../reconstruct/index.ts";
import { visibleText } from "../text/visible-text.ts";

/** So many calls of each cause are named. */
const worstCalls = 3;

export function renderDrift({ compared, mean, max, tolerance, not_comparable, unknown_calls, calls }: DriftSummary): string {
  const skipped = Object.entries(not_comparable).map(
    ([reason, count]) => `  ${count} calls not comparable: ${reason.replaceAll("_", " ")}`,
  );
  const strange = unknown_calls > 0 ? [`  ${unknown_calls} calls of the file are not in this run`] : [];
  const head =
    mean === null || max === null
      ? "The trainer's logprobs: no token could be compared"
      : `The trainer's logprobs: ${compared} tokens compared, |Δ| mean ${nats(mean)}, max ${nats(max)} nats (tolerance ${tolerance})`;
  const causes = Object.entries(driftCauses).flatMap(([cause, meaning]) => {
    const drifted = calls.filter((call) => call.cause === cause);
    return drifted.length === 0 ? [] : [causeText(cause, meaning, drifted)];
  });
  const verdict = mean !== null && causes.length === 0 ? ["  All agree."] : [];
  return [[head, ...skipped, ...strange, ...verdict].join("\n"), ...causes].join("\n\n");
}

function causeText(cause: string, { what, cure }: { what: string; cure: string | null }, calls: readonly AttributedDrift[]): string {
  const worst = calls.toSorted((one, other) => (other.mean ?? 0) - (one.mean ?? 0)).slice(0, worstCalls);
  return [
    `${calls.length} × ${cause.replaceAll("_", " ")}: ${what}`,
    ...worst.map(
      ({ rollout, ordinal, mean, max, why }) =>
        `  ${visibleText(rollout)}, turn ${ordinal + 1}: |Δ| mean ${nats(mean ?? 0)}, max ${nats(max?.difference ?? 0)} at sampled token ${max?.at}: ${why}`,
    ),
    ...(cure === null ? [] : [`  → ${cure}`]),
  ].join("\n");
}

const nats = (value: number): string => value.toPrecision(2);
