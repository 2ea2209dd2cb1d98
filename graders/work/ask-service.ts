/** One GET at a service, by the host's own way in, bounded. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { Duplex } from "node:stream";
import { messageOf } from "../../base/errors.ts";
import { hashOf } from "../../base/schema/ids.ts";
import type { Sandbox } from "../../sandboxes/index.ts";

/** What is asked of a service that runs, once the agent has ended. */
export type ServiceGet = { service: string; port: number; get: string };

/**
 * `body`: null if it has more than `mostAnswerBytes`. `problem`: in words why there is no answer. `by_agent`: what the agent
 * did is why.
 */
export type ServiceReply = { status: number; body: string | null } | { problem: string; by_agent?: boolean };

/** Tells whether a reply says something about the service's state. 404: nothing is there. */
export function answersWell(reply: ServiceReply): boolean {
  return "status" in reply && (reply.status === 404 || (reply.status >= 200 && reply.status <= 299));
}

/** What a person compares with a value is short. */
export const mostAnswerBytes = 1024 * 1024;
const mostMs = 10_000;

/** Where a layer of readings has a file of a service. */
export function statePath(service: string, path: string): string {
  return `/state/${service}${path}`;
}

/** Where it has the answer to a question. */
export function answerPath({ service, port, get }: ServiceGet): string {
  return `/answers/${hashOf([service, port, get]).slice(0, 32)}.json`;
}

/** Rejects only for the signal. */
export async function askService(
  sandbox: Pick<Sandbox, "connect">,
  { service, port, get }: ServiceGet,
  signal: AbortSignal,
): Promise<ServiceReply> {
  const within = AbortSignal.any([signal, AbortSignal.timeout(mostMs)]);
  try {
    return await fetchFrom(await sandbox.connect(service, port, within), `${service}:${port}`, get, within);
  } catch (error) {
    signal.throwIfAborted();
    return { problem: `GET ${get} at port ${port} of the service ${service}: ${messageOf(error)}` };
  }
}

async function fetchFrom(socket: Duplex, host: string, path: string, signal: AbortSignal): Promise<ServiceReply> {
  const headers = { host, accept: "application/json", connection: "close" };
  const asked = request({ path, headers, signal, createConnection: () => socket });
  asked.on("error", () => {}); // awaited below, or the answer's own end says it
  try {
    asked.end();
    const [response] = (await once(asked, "response", { signal })) as [IncomingMessage];
    const pieces: Buffer[] = [];
    let bytes = 0;
    for await (const piece of response as AsyncIterable<Buffer>) {
      bytes += piece.length;
      if (bytes > mostAnswerBytes) return { status: response.statusCode ?? 0, body: null };
      pieces.push(piece);
    }
    return { status: response.statusCode ?? 0, body: Buffer.concat(pieces).toString("utf8") };
  } finally {
    asked.destroy();
    socket.destroy();
  }
}
