/** What commands in a sandbox reach of a task's services, before the agent begins: ports, abstract sockets, and servers of tools. */
import type { ReachScan } from "../../base/schema/admission.ts";
import { ownPlace, type ToolServer } from "../../base/schema/environment/tool-servers.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Sandbox } from "../../sandboxes/index.ts";

/** A port of loopback answers at once, or refuses. */
const connectMs = 5_000;

/** The kernel's word for a socket that listens. */
const listening = "0A";

/** `reached`: servers of tools that answer at the same port of the sandbox itself. null: the sandbox has no `cat`. */
export async function scanReach(
  { environment }: Task,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<{ scan: ReachScan; reached: ToolServer[] } | null> {
  const listed = await sandbox.exec(["cat", "/proc/net/tcp", "/proc/net/tcp6", "/proc/net/unix"], { timeout_ms: connectMs, signal });
  if (listed.exit_code === null || !listed.stdout.includes("local_address")) return null;
  const ports = listeningPorts(listed.stdout);
  const exposed = Object.values(environment.services ?? {}).flatMap(({ expose }) => expose);
  const servers = (environment.tools ?? []).filter(({ service, port }) => service !== ownPlace && port !== undefined);
  const reached: ToolServer[] = [];
  for (const server of servers) if (await listensAt(sandbox, server.port ?? 0, signal)) reached.push(server);
  const past_relay = servers.length === 0 ? "no_port" : reached.length > 0 ? "reached" : "not_reached";
  const open = ports.filter((port) => !exposed.includes(port));
  const scan: ReachScan = {
    open,
    sockets: abstractSockets(listed.stdout),
    exposed: ports.filter((port) => exposed.includes(port)),
    past_relay,
  };
  return { scan, reached };
}

function listeningPorts(text: string): number[] {
  const sockets = text.matchAll(/^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{2}) /gm);
  const ports = [...sockets].filter(([, , state]) => state === listening).map(([, port = ""]) => Number.parseInt(port, 16));
  return [...new Set(ports)].sort((a, b) => a - b);
}

function abstractSockets(text: string): string[] {
  return [...text.matchAll(/ (@\S+)$/gm)].map(([, name = ""]) => name);
}

async function listensAt(sandbox: Sandbox, port: number, signal: AbortSignal): Promise<boolean> {
  try {
    (await sandbox.connect(ownPlace, port, AbortSignal.any([signal, AbortSignal.timeout(connectMs)]))).destroy();
    return true;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}
