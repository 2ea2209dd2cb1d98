/** One question to a service, by the host's own way in, bounded: a GET, or a POST of what the agent answered. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import type { Duplex } from "node:stream";
import { messageOf } from "../../base/errors.ts";
import { hashOf } from "../../base/schema/ids.ts";
import type { Sandbox } from "../../sandboxes/index.ts";

/** What is asked of a service that runs, once the agent has ended. */
export type QuestionToService = { service: string; port: number } & ({ get: string } | { post: string });

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
/** A service that grades works before it answers a POST. */
const mostMs = { GET: 10_000, POST: 60_000 };

/** Where a layer of readings has a file of a service. */
export function statePath(service: string, path: string): string {
  return `/state/${service}${path}`;
}

/** Where it has the answer to a question. */
export function answerPath({ service, port, ...asked }: QuestionToService): string {
  const words = "get" in asked ? [service, port, asked.get] : [service, port, "POST", asked.post];
  return `/answers/${hashOf(words).slice(0, 32)}.json`;
}

/** `answers`: what the agent said in turns that call no tool, which a POST sends. Rejects only for the signal. */
export async function askService(
  sandbox: Pick<Sandbox, "connect">,
  { service, port, ...asked }: QuestionToService,
  answers: readonly string[],
  signal: AbortSignal,
): Promise<ServiceReply> {
  const [method, path] = "get" in asked ? (["GET", asked.get] as const) : (["POST", asked.post] as const);
  const within = AbortSignal.any([signal, AbortSignal.timeout(mostMs[method])]);
  const body = method === "GET" ? null : JSON.stringify({ answers });
  try {
    return await fetchFrom(await sandbox.connect(service, port, within), { method, path, host: `${service}:${port}`, body }, within);
  } catch (error) {
    signal.throwIfAborted();
    return { problem: `${method} ${path} at port ${port} of the service ${service}: ${messageOf(error)}` };
  }
}

type HttpQuestion = { method: string; path: string; host: string; body: string | null };

async function fetchFrom(socket: Duplex, { method, path, host, body }: HttpQuestion, signal: AbortSignal): Promise<ServiceReply> {
  const sent = body === null ? {} : { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const headers = { host, accept: "application/json", connection: "close", ...sent };
  const asked = request({ method, path, headers, signal, createConnection: () => socket });
  asked.on("error", () => {}); // awaited below, or the answer's own end says it
  try {
    asked.end(body ?? undefined);
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
