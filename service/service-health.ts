/** Why rollouts of a service do not go on. */
import { messageOf } from "../base/errors.ts";
import { untilAborted } from "../base/host/until-aborted.ts";
import { type Fault, type Health, healthOf } from "../proxy/control/index.ts";
import type { ServiceControl } from "./fences/service-control.ts";
import type { HeardNode, Ledger, NodeState } from "./ledger/index.ts";
import type { ServiceParts } from "./service-parts.ts";

/** A monitor waits a few seconds for an answer; a ledger that takes longer does not answer. */
const ledgerMs = 3_000;

type HealthParts = Pick<ServiceParts, "ledger" | "engines" | "nodeFaults">;

type ServiceState = {
  health: Health;
  fences: Awaited<ReturnType<ServiceControl["status"]>>;
  engines: ReturnType<NonNullable<ServiceParts["engines"]>>;
  nodes: NodeState[];
};

/**
 * Never throws for the ledger's sake: what it does to the service is the answer. Its questions end with the answer, or those of
 * a monitor that asks again would fill the ledger's connections. Throws the signal's reason.
 */
export async function serviceHealth(parts: HealthParts, control: ServiceControl, signal: AbortSignal): Promise<ServiceState> {
  const engines = parts.engines?.() ?? [];
  const own = await ownFaults(parts, signal);
  try {
    const within = AbortSignal.any([signal, AbortSignal.timeout(ledgerMs)]);
    const [fences, [nodes, held], reports] = await untilAborted(ofLedger(parts.ledger, control, within), within);
    const faults = [...faultsOfNodes(nodes), ...own, ...held.map(degraded), ...reports.flatMap(refusals), ...fences.map(faultOfFence)];
    return { health: healthOf(faults), fences, engines, nodes };
  } catch (error) {
    signal.throwIfAborted();
    const reason = `the ledger does not answer: ${messageOf(error)}`;
    return { health: { status: "down", reason }, fences: [], engines, nodes: [] };
  }
}

function ofLedger(ledger: Ledger, control: ServiceControl, signal: AbortSignal) {
  // The ledger has four connections, and others want one too.
  const nodesAndHeld = async () => [await ledger.nodes(signal), await ledger.heldBack(signal)] as const;
  return Promise.all([control.status(signal), nodesAndHeld(), ledger.reports(signal)]);
}

function degraded(reason: string): Fault {
  return { status: "degraded", reason };
}

/**
 * The service still takes sets and groups, but its rollouts wait. A node's gates follow the fences, which have faults of their own.
 */
async function ownFaults({ nodeFaults }: HealthParts, signal: AbortSignal): Promise<Fault[]> {
  const faults = (await nodeFaults?.(signal)) ?? [];
  return faults.flatMap(({ status, reason }) =>
    status === "paused" || status === "alarm" ? [] : [{ status: "degraded" as const, reason }],
  );
}

function faultsOfNodes(nodes: readonly NodeState[]): Fault[] {
  if (nodes.length === 0) return [{ status: "degraded", reason: "no node is at work" }];
  const idle = nodes.every(({ is_draining }) => is_draining);
  return idle ? [{ status: "degraded", reason: `no node is at work: ${nodes.map(({ name }) => name).join(", ")} draining` }] : [];
}

/** Lists the orders to all nodes that this node could not carry out. Its gate stays shut until it can. */
function refusals({ node, report }: HeardNode): Fault[] {
  const errors = Object.values(report?.answers ?? {}).flatMap(({ error }) => error ?? []);
  return errors.map(({ message }) => ({ status: "degraded", reason: `node ${node}: ${message}` }));
}

function faultOfFence({ fence }: { fence: string }): Fault {
  return { status: "paused", reason: `fence ${fence} is shut: POST /control/resume opens it` };
}
