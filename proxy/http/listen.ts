/** Opening and closing a listener, for harnesses and for control alike. */
import type { Server } from "node:http";
import { AlidadeError, asAlidadeError } from "../../errors.ts";

/** Listens and returns the URL; port 0 takes a free one. Throws `config_invalid` naming the address that cannot be had. */
export async function listenOn(server: Server, host: string, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(asAlidadeError(error, "config_invalid", `cannot listen on ${host}:${port}: `)));
    server.listen(port, host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new AlidadeError("internal", "the listener has no port");
  const reachable = anyAddress.get(host) ?? host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${address.port}`;
}

/** Listening everywhere is no address to call; from this machine the loopback is. */
const anyAddress = new Map([
  ["0.0.0.0", "127.0.0.1"],
  ["::", "::1"],
]);

export async function closeListener(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise<void>((resolve) => server.close(() => resolve()));
}
