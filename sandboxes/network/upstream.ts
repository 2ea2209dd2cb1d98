/** A connection to a host that a sandbox may reach, at an address that was checked. */
import { once } from "node:events";
import { connect, isIPv6, type Socket } from "node:net";
import { checkedAddresses, type Network } from "../../base/wire/network.ts";
import type { Destination } from "./allowed-names.ts";
import { RefusedConnection } from "./refused-connection.ts";

/** A name's addresses are tried one after the other, so a host that does not answer holds a client this often at most. */
const mostTried = 3;
/** One lost packet costs a second or three. */
const connectMs = 10_000;

export type Reach = {
  network: Network;
  /** Names and addresses that are never reached, whatever a task allows: the engines'. */
  never: () => Promise<ReadonlySet<string>>;
};

/** Throws `RefusedConnection`, and the signal's reason. */
export async function openUpstream({ host, port }: Destination, { network, never }: Reach, signal: AbortSignal): Promise<Socket> {
  const forbidden = await never();
  if (forbidden.has(host)) throw new RefusedConnection("engine_address");
  const addresses = await checkedAddresses(host, network).catch(() => []);
  signal.throwIfAborted();
  if (addresses === null) throw new RefusedConnection("address_not_public");
  if (addresses.some((address) => forbidden.has(address))) throw new RefusedConnection("engine_address");
  if (addresses.length === 0) throw new RefusedConnection("name_unknown");
  // IPv4 first: many machines have addresses of version 6 and no way to them.
  const inOrder = addresses.toSorted((a, b) => Number(isIPv6(a)) - Number(isIPv6(b)));
  for (const address of inOrder.slice(0, mostTried)) {
    const socket = await connected(address, port, signal);
    if (socket !== null) return socket;
  }
  throw new RefusedConnection("connect_failed");
}

async function connected(address: string, port: number, signal: AbortSignal): Promise<Socket | null> {
  const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true });
  socket.on("error", () => {}); // its close says it too
  try {
    await once(socket, "connect", { signal: AbortSignal.any([signal, AbortSignal.timeout(connectMs)]) });
    return socket;
  } catch {
    socket.destroy();
    signal.throwIfAborted();
    return null;
  }
}
