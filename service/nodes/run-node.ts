/** One machine at work for a ledger. */
import { messageOf } from "../../base/errors.ts";
import { nameOf, numberOf } from "../../base/host/deaths/judge-deaths.ts";
import { gauge, type MetricFamily } from "../../base/wire/prometheus-text.ts";
import type { Fault } from "../../proxy/control/index.ts";
import { engineMetrics } from "../../proxy/control/index.ts";
import type { Ledger } from "../ledger/index.ts";
import { type AttemptSetup, Attempts } from "./attempts.ts";
import { ClaimLoop } from "./claim-loop.ts";
import { faultsOfMachine, type HealthPlace, listenForHealth } from "./node-health.ts";

export type NodeSetup = AttemptSetup & {
  /** Its name in the ledger; one that joins again under it takes the place of the one that died. */
  name: string;
  ledger: Ledger;
  /** Where it says how it is. It says nothing where left out. */
  health?: HealthPlace | undefined;
  /** Figures of this process, for a monitor. */
  families?: (() => MetricFamily[]) | undefined;
};

/**
 * Until one of the signals fires. `signal`: what runs then goes back into the line, and does not count as broken. `drain`:
 * nothing more is claimed, what has no sandbox yet goes back too, and what runs goes on to its end.
 */
export async function runNode(node: NodeSetup, signal: AbortSignal, drain: AbortSignal = signal): Promise<void> {
  const { name, ledger, setup, health: place } = node;
  const attempts = new Attempts(node, signal);
  const note = (text: string): void => setup.onProgress({ type: "note", text });
  const work = {
    name,
    ledger,
    setup,
    blameless: (setup.guard?.blameless ?? []).map((attempt) => ({ rollout_id: nameOf(attempt), attempt: numberOf(attempt) })),
    atOnce: { any: setup.slots.atOnce, evaluations: setup.slots.evaluation?.atOnce ?? 0 },
    attempt: attempts.make.bind(attempts),
  };
  const loop = new ClaimLoop(work, signal, AbortSignal.any([signal, drain]));
  const faults = () => faultsOfNode(loop, setup, signal);
  await using health = place === undefined ? null : await listenForHealth(place, faults, () => familiesOf(node));
  if (health !== null) note(`health on ${health.url}`);
  await tellSetAside(node, note);
  await loop.run();
}

/** Another node may have claimed them by now. One that the ledger does not hear of ends where this node claims it. */
async function tellSetAside({ ledger, setup }: NodeSetup, note: (text: string) => void): Promise<void> {
  try {
    for (const [rollout, why] of setup.guard?.aside ?? [])
      if (await ledger.setAside(rollout, why)) note(`ALARM: ${rollout} is set aside: ${why}`);
  } catch (error) {
    note(`what is set aside could not be told: ${messageOf(error)}`);
  }
}

function familiesOf({ name, setup: { proxy, slots }, families }: NodeSetup): MetricFamily[] {
  const { active, waiting } = slots.run.counters;
  return [
    { ...gauge("alidade_node_info", "The name of this node.", 1), samples: [{ labels: { node: name }, value: 1 }] },
    gauge("alidade_node_running", "Agents that work on this node now.", active),
    gauge("alidade_node_waiting", "Rollouts of this node that wait for an agent's place.", waiting),
    ...engineMetrics(proxy.pool.slots.map((slot) => slot.describe())),
    ...(families?.() ?? []),
  ];
}

async function faultsOfNode(loop: ClaimLoop, setup: NodeSetup["setup"], signal: AbortSignal): Promise<Fault[]> {
  return [...loop.faults(), ...(await faultsOfMachine(setup, signal))];
}
