/**
 * Exchanges with a real server, written down whole and played again: tests that need what a server really says run where
 * none can be installed. What is asked is matched by its content and not by every flag beside it, so that an adapter may
 * ask for more without a new recording.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { canonicalJson } from "../../../base/schema/ids.ts";
import { type Served, served } from "../../fakes/proxies/served.ts";

export type Exchange = { method: string; path: string; request: unknown; status: number; response: unknown };

/** The fields of a body that decide what is answered. */
const content = ["messages", "tools", "prompt", "text", "input_ids", "tokens", "max_tokens", "temperature", "structured_outputs", "regex"];

/** A relay in front of `url` that keeps what passes. */
export function recording(url: string, exchanges: Exchange[]): Promise<Served> {
  return serve(async ({ method, path, body }) => {
    const answer = await fetch(url + path, {
      method,
      ...(body !== null && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    const exchange = { method, path, request: body, status: answer.status, response: parsed(await answer.text()) };
    exchanges.push(exchange);
    return exchange;
  });
}

/** A server that says again what was recorded; what was not is a 501 that says so. */
export function replaying(exchanges: readonly Exchange[]): Promise<Served> {
  return serve(async ({ method, path, body }) => {
    const found = exchanges.find((one) => one.method === method && one.path === path && asked(one.request) === asked(body));
    return found ?? { status: 501, response: { error: { message: `not recorded: ${method} ${path} ${JSON.stringify(body)}` } } };
  });
}

type Question = { method: string; path: string; body: unknown };

async function serve(answer: (question: Question) => Promise<Pick<Exchange, "status" | "response">>): Promise<Served> {
  const server = createServer((incoming, outgoing) => {
    void respond(incoming, outgoing).catch((error: unknown) => outgoing.writeHead(500).end(String(error)));
  });
  const respond = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const text = Buffer.concat(await Array.fromAsync(incoming as AsyncIterable<Buffer>)).toString();
    const { status, response } = await answer({
      method: incoming.method ?? "GET",
      path: incoming.url ?? "/",
      body: text === "" ? null : (JSON.parse(text) as unknown),
    });
    outgoing
      .writeHead(status, { "content-type": "application/json" })
      .end(typeof response === "string" ? response : JSON.stringify(response));
  };
  return served(server);
}

function asked(body: unknown): string {
  if (body === null || typeof body !== "object") return "";
  return canonicalJson(Object.fromEntries(Object.entries(body).filter(([name]) => content.includes(name))));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
