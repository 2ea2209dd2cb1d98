/** The route that a Prometheus reads. */
import { SharedWork } from "../../host/shared-work.ts";
import type { Ledger, SetState } from "../../ledger/index.ts";
import { engineMetrics } from "../../proxy/control/engine-metrics.ts";
import type { Histogram } from "../../wire/histogram.ts";
import { prometheusText, prometheusType } from "../../wire/prometheus-text.ts";
import type { Caller } from "../callers/caller.ts";
import { ledgerMetrics, type SetFigures } from "../ledger-metrics.ts";
import type { ServiceParts } from "../service-parts.ts";
import type { SetTallies } from "../set-tallies.ts";
import { defineRoute, type ServiceRoute } from "./route.ts";

/** Each adds ten series; older steps are served by `GET /sets/:id/figures`. */
const latestSteps = 3;

/** About 25 series each, and those of its latest steps. A trainer that makes a set a step would fill its monitor's memory with sets that are over. */
const mostSets = 100;

export function metricsRoute({ ledger, engines, families }: ServiceParts, tallies: SetTallies, lag: Histogram): ServiceRoute {
  /** Those that see the same sets share one look. */
  const looks = new Map<string | null, SharedWork<string>>();
  const looksOf = (namespace: string | null): SharedWork<string> => {
    const known = looks.get(namespace) ?? new SharedWork<string>();
    looks.set(namespace, known);
    return known;
  };
  const lookOf = (caller: Caller) => async (signal: AbortSignal) =>
    prometheusText([
      ...(await ofLedger(ledger, caller, tallies, signal)),
      ...engineMetrics(engines?.() ?? []),
      lag.family(),
      ...(families?.() ?? []),
    ]);
  return defineRoute({
    method: "get",
    path: "/metrics",
    roles: ["read"],
    title: "Figures of sets, nodes and engines in Prometheus's text format",
    answers: [prometheusType],
    handle: async ({ signal }, caller) =>
      new Response(await looksOf(caller.namespace).join(signal, lookOf(caller)), { headers: { "content-type": prometheusType } }),
  });
}

async function ofLedger(ledger: Ledger, caller: Caller, tallies: SetTallies, signal: AbortSignal) {
  const sets = await caller.ledger.sets();
  const shown: SetFigures[] = [];
  for (const state of shownOf(sets)) {
    const { steps } = await tallies.of(state.set_id, signal);
    shown.push({ state, tally: steps.total, steps: steps.latest(latestSteps) });
  }
  return ledgerMetrics(shown, sets.length, await ledger.nodes());
}

/** Those with open rollouts first, and the newest of each kind. */
function shownOf(sets: readonly SetState[]): SetState[] {
  const isOver = ({ rollouts }: SetState): number => Number(rollouts.queued + rollouts.running === 0);
  return sets
    .toReversed()
    .toSorted((one, other) => isOver(one) - isOver(other))
    .slice(0, mostSets);
}
