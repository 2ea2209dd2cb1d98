/** Opens the tools of a rollout. Each server lists its tools before the agent begins. */
import type { Duplex } from "node:stream";
import type { ToolServer } from "../../base/schema/environment/tool-servers.ts";
import type { Session } from "../session/session.ts";
import { HttpLink } from "./http-link.ts";
import { StdioLink } from "./stdio-link.ts";
import { ToolRelay } from "./tool-relay.ts";
import { ToolService } from "./tool-service.ts";

/** The two ways to reach a service. A sandbox offers both. */
export type ServicesWithin = {
  /** Rejects if nothing listens at the port. */
  connect(service: string, port: number, signal: AbortSignal): Promise<Duplex>;
  /** Runs a command in the service. The stream is its standard input and output, and ends when the command ends. */
  start(service: string, argv: string[], signal: AbortSignal): Promise<Duplex>;
};

/** Throws `tool_service_failed` and `task_invalid`, like `ToolService.open`. */
export async function openTools(
  session: Session,
  servers: readonly ToolServer[],
  place: ServicesWithin,
  signal: AbortSignal,
): Promise<ToolRelay> {
  await using scope = new AsyncDisposableStack();
  const opened = await Promise.allSettled(servers.map((server) => ToolService.open(server, linkTo(server, place), signal)));
  for (const one of opened) if (one.status === "fulfilled") scope.use(one.value);
  const services = opened.map((one) => {
    if (one.status === "rejected") throw one.reason;
    return one.value;
  });
  const relay = await ToolRelay.open(session, services);
  scope.move();
  return relay;
}

function linkTo(server: ToolServer, place: ServicesWithin): Parameters<typeof ToolService.open>[1] {
  const { service, port, path = "/mcp", command, max_result_bytes: mostBytes } = server;
  return async (signal) => {
    if (command !== undefined) return new StdioLink(await place.start(service, command, signal), mostBytes);
    // The schema requires `port` if there is no `command`.
    const at = port as number;
    return new HttpLink({ port: at, path, mostBytes, connect: (within) => place.connect(service, at, within) });
  };
}
