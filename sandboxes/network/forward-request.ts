/** One HTTP request that a proxy sends on: read by Node's strict parser and written anew, so nothing can hide between two requests. */
import { type IncomingMessage, request as openRequest, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import { type Destination, destinationOf } from "./allowed-names.ts";
import type { Meter } from "./metered.ts";
import { RefusedConnection } from "./refused-connection.ts";

/** Headers that speak of one connection (RFC 9110, 7.6.1), and those that a proxy answers itself. */
const ofOneConnection = [
  ...["connection", "proxy-connection", "keep-alive", "te", "transfer-encoding", "upgrade", "expect"],
  ...["proxy-authorization", "proxy-authenticate"],
];

/** Twice of what servers are known to send. */
const maxAnswerHeaderBytes = 64 * 1024;

/** Where a request goes, and its path there. `within`: the destination of the tunnel that it came through, if it came through one. */
export function askedOf({ url = "", headersDistinct }: IncomingMessage, within: Destination | null): Destination & { path: string } {
  const [, authority = "", path = ""] = /^http:\/\/([^/?#]*)(.*)$/i.exec(url) ?? [];
  const isOrigin = url.startsWith("/") || url === "*";
  const destination = within ?? destinationOf(withPort(authority));
  if (within === null ? isOrigin || url === authority : !isOrigin) throw new RefusedConnection("not_understood");
  if (destination === null) throw new RefusedConnection("not_a_name");
  const [host = "", ...others] = headersDistinct.host ?? [];
  const said = others.length === 0 ? destinationOf(withPort(host)) : null;
  if (said?.host !== destination.host || said.port !== destination.port) throw new RefusedConnection("host_differs");
  return { ...destination, path: within ? url : path.startsWith("/") ? path : `/${path}` };
}

function withPort(authority: string): string {
  return authority.includes(":") ? authority : `${authority}:80`;
}

/** Resolves when the answer has been passed on. */
export async function forwardRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { path, upstream, meter }: { path: string; upstream: Socket; meter: Meter },
): Promise<void> {
  const isChunked = request.headers["transfer-encoding"] !== undefined;
  const outgoing = openRequest({
    createConnection: () => upstream,
    method: request.method,
    path,
    setHost: false,
    maxHeaderSize: maxAnswerHeaderBytes,
    headers: [...endToEnd(request.rawHeaders), ...(isChunked ? ["transfer-encoding", "chunked"] : [])],
  });
  // A server may fail more than once: what comes after the first failure changes nothing.
  const answered = new Promise<IncomingMessage>((resolve, reject) => outgoing.once("response", resolve).on("error", reject));
  answered.catch(() => {}); // awaited below
  const sent = pipeline(request, meter.stage(), outgoing).catch((error: unknown) => {
    // A server may answer before it has read all, and close.
    if (error instanceof RefusedConnection) throw error;
  });
  const incoming = await Promise.race([answered, sent.then(() => answered)]);
  response.sendDate = false;
  response.writeHead(incoming.statusCode ?? 502, incoming.statusMessage, [...endToEnd(incoming.rawHeaders), "connection", "close"]);
  await pipeline(incoming, meter.stage(), response);
}

/** Names and values in turn, as they came, without those of one connection and those that `Connection` names. */
function endToEnd(raw: string[]): string[] {
  const pairs = raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1] ?? ""] as const] : []));
  const named = pairs.filter(([name]) => name.toLowerCase() === "connection").flatMap(([, value]) => value.toLowerCase().split(/\s*,\s*/));
  return pairs.filter(([name]) => ![...ofOneConnection, ...named].includes(name.toLowerCase())).flat();
}
