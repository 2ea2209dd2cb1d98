/** What the engines of a proxy do now, for a monitor. */
import type { MetricFamily, MetricSample } from "../../base/wire/prometheus-text.ts";
import type { EngineSlot } from "../pool/engine-slot.ts";

type EngineNow = Pick<ReturnType<EngineSlot["describe"]>, "name" | "in_flight" | "waiting" | "health" | "draining" | "paused">;

export function engineMetrics(engines: readonly EngineNow[]): MetricFamily[] {
  const gauge = (name: string, help: string, value: (engine: EngineNow) => number): MetricFamily => {
    const samples: MetricSample[] = engines.map((engine) => ({ labels: { engine: engine.name }, value: value(engine) }));
    return { name, type: "gauge", help, samples };
  };
  return [
    gauge("alidade_engine_calls_in_flight", "Calls that the engine works on now.", ({ in_flight }) => in_flight),
    gauge("alidade_engine_calls_waiting", "Calls that wait at its gate or for a place at it.", ({ waiting }) => waiting),
    gauge("alidade_engine_healthy", "0: the engine failed, and calls go to others until it answers again.", ({ health }) =>
      Number(health === "ok"),
    ),
    gauge("alidade_engine_paused", "1: its gate is shut for new weights.", ({ paused }) => Number(paused !== null)),
    gauge("alidade_engine_draining", "1: it takes no new calls.", ({ draining }) => Number(draining)),
  ];
}
