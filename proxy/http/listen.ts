/** Opening and closing a listener, for harnesses and for control alike. */
import { createServer, type RequestListener, type Server, type ServerOptions } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { certifiedName, type TlsPair } from "./tls-files.ts";

export type HttpServer = Server | TlsServer;

/** A client that has not shaken hands by then does not want to talk. */
const handshakeMs = 30_000;

/** Speaks HTTPS where there is a pair. */
export function serverOf(options: ServerOptions, answer: RequestListener, tls?: TlsPair): HttpServer {
  return tls ? createTlsServer({ ...options, ...tls, handshakeTimeout: handshakeMs }, answer) : createServer(options, answer);
}

/** Listens and returns the URL; port 0 takes a free one. Throws `config_invalid` naming the address that cannot be had. */
export async function listenOn(server: HttpServer, host: string, port: number, tls?: TlsPair): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => reject(asAlidadeError(error, "config_invalid", `cannot listen on ${host}:${port}: `)));
    server.listen(port, host, resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new AlidadeError("internal", "the listener has no port");
  const reachable = reachableName(host, tls);
  return `${tls ? "https" : "http"}://${reachable.includes(":") ? `[${reachable}]` : reachable}:${address.port}`;
}

/** Listening everywhere is no address to call; from this machine the loopback is, and by TLS a name that the certificate has. */
function reachableName(host: string, tls: TlsPair | undefined): string {
  const loopback = anyAddress.get(host);
  if (loopback === undefined) return host;
  return (tls && certifiedName(tls.cert)) ?? loopback;
}

const anyAddress = new Map([
  ["0.0.0.0", "127.0.0.1"],
  ["::", "::1"],
]);

export async function closeListener(server: HttpServer): Promise<void> {
  server.closeAllConnections();
  await new Promise<void>((resolve) => server.close(() => resolve()));
}
