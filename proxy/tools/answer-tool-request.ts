/** Answers one message of a harness on the relay's route. It has the same bounds as any other request of its session. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import { valuesIn } from "../../base/wire/json-text.ts";
import type { Gate } from "../http/gate.ts";
import { RequestBytes } from "../http/request-bytes.ts";
import type { Session } from "../session/session.ts";
import { errorObject, errorText, rpcErrors } from "./mcp.ts";
import type { ToolRelay } from "./tool-relay.ts";

/** The model samples the arguments, and no turn samples a million bytes. */
const mostRequestBytes = 1024 * 1024;

export type ToolRequest = {
  session: Session;
  relay: ToolRelay;
  server: string;
  gate: Gate;
  incoming: IncomingMessage;
  outgoing: ServerResponse;
};

export async function answerToolRequest(request: ToolRequest): Promise<void> {
  const { incoming, outgoing, session, gate, relay, server } = request;
  // GET would open a stream for messages that the server starts, and DELETE would end an MCP session. We have neither.
  if (incoming.method !== "POST") return send(outgoing, 405, "", { allow: "POST" });
  const gone = new AbortController();
  const closed = new Promise<void>((resolve) => {
    outgoing.once("close", () => {
      gone.abort();
      resolve();
    });
  });
  try {
    using _place = await gate.enter(session, gone.signal);
    const text = await readText(request, { signal: gone.signal, closed });
    const answer = await relay.answer(server, text);
    await send(outgoing, answer === null ? 202 : 200, answer ?? "");
  } catch (error) {
    const failure = asAlidadeError(error, "internal");
    await send(outgoing, failure.status, errorText("null", errorObject(rpcErrors.internal, failure.message)), retryAfter(failure));
  }
}

async function readText(
  { session, gate, incoming }: ToolRequest,
  { signal, closed }: { signal: AbortSignal; closed: Promise<void> },
): Promise<string> {
  const bytes = new RequestBytes(incoming);
  bytes.assertAtMost(mostRequestBytes);
  const body = Buffer.concat(await gate.read(session, { bytes, signal, closed }, 0));
  bytes.release();
  if (body.length > mostRequestBytes)
    throw new AlidadeError("request_invalid", `the request has ${body.length} bytes: send at most ${mostRequestBytes} for a tool call`, {
      status: 413,
    });
  await gate.turn(session, signal);
  const values = valuesIn(body);
  await gate.bring(session, { bytes: body.length, values, allValues: values }, signal);
  return body.toString();
}

function retryAfter({ retryAfterSeconds }: AlidadeError): Record<string, string> {
  return retryAfterSeconds === null ? {} : { "retry-after": String(Math.ceil(retryAfterSeconds)) };
}

function send(outgoing: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (outgoing.destroyed || outgoing.headersSent) return Promise.resolve();
  const body = Buffer.from(text);
  outgoing.once("close", resolve);
  outgoing.writeHead(status, {
    ...(body.length > 0 && { "content-type": "application/json" }),
    "content-length": String(body.length),
    ...headers,
  });
  outgoing.end(body);
  return promise;
}
