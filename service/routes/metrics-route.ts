/** The route that a Prometheus reads. */
import { SharedWork } from "../../base/host/shared-work.ts";
import type { Histogram } from "../../base/wire/histogram.ts";
import { prometheusText, prometheusType } from "../../base/wire/prometheus-text.ts";
import { engineMetrics } from "../../proxy/control/index.ts";
import type { Caller } from "../callers/caller.ts";
import type { Ledger } from "../ledger/index.ts";
import { ledgerMetrics, type SetFigures } from "../ledger-metrics.ts";
import type { ServiceParts } from "../service-parts.ts";
import type { SetTallies } from "../set-tallies.ts";
import { defineRoute, type ServiceRoute } from "./route.ts";

/** Each adds ten series; older steps are served by `GET /sets/:id/figures`. */
const latestSteps = 3;

/** About 25 series each, and those of its latest steps. A trainer that makes a set a step would fill its monitor's memory with sets that are over. */
const mostSets = 100;

/**
 * Results that one scrape reads, half a second's. Each is read once; where more are new, as for the first scrape of an old ledger, the
 * next ones go on, and `alidade_results_counted` says how far they are.
 */
const mostRead = 10_000;

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
  const { total, sets } = await caller.ledger.latestSets(mostSets);
  const shown: SetFigures[] = [];
  let left = mostRead;
  for (const state of sets) {
    const { tallies: found, read } = await tallies.soFar(state.set_id, left, signal);
    left -= read;
    shown.push({ state, counted: found.counted, tally: found.steps.total, steps: found.steps.latest(latestSteps) });
  }
  return ledgerMetrics(shown, total, await ledger.nodes());
}
