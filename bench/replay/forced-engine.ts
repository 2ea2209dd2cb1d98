/**
 * A relay in front of an engine. It forces each answer by a grammar with a single choice. The text depends on the request alone,
 * so the main agent and its sub-agents play their own turns, in any order.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";

const AskedMessage = z.looseObject({
  role: z.string(),
  content: z.unknown(),
  tool_calls: z.array(z.looseObject({ function: z.looseObject({ name: z.string(), arguments: z.string() }) })).nullish(),
});
const Asked = z.looseObject({
  messages: z.array(AskedMessage),
  tools: z.array(z.looseObject({ function: z.looseObject({ name: z.string() }) })).nullish(),
});
export type Asked = z.infer<typeof Asked>;

export type ForcedEngine = AsyncDisposable & { url: string };

export async function startForcedEngine(engineUrl: string, say: (asked: Asked) => string): Promise<ForcedEngine> {
  const server = createServer((incoming, outgoing) => void relay({ engineUrl, say }, incoming, outgoing).catch(() => outgoing.destroy()));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type RelayAt = { engineUrl: string; say: (asked: Asked) => string };

async function relay({ engineUrl, say }: RelayAt, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const body = incoming.url === "/v1/chat/completions" ? forced(Buffer.concat(chunks), say) : Buffer.concat(chunks);
  const headers = { ...incoming.headers, host: new URL(engineUrl).host, "content-length": String(body.length) };
  delete headers["transfer-encoding"];
  // Open a new connection for each request: the engine may close a kept connection just when a request is sent.
  const upstream = request(new URL(incoming.url ?? "/", engineUrl), { method: incoming.method, headers, agent: false }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
    answer.on("error", () => outgoing.destroy());
  });
  upstream.on("error", () => outgoing.destroy());
  outgoing.on("close", () => {
    if (!outgoing.writableEnded) upstream.destroy();
  });
  upstream.end(body);
}

/** Forces streamed requests only: harnesses stream, and probes do not. */
function forced(bytes: Buffer, say: (asked: Asked) => string): Buffer {
  const body: unknown = JSON.parse(bytes.toString());
  const asked = Asked.safeParse(body);
  if (!asked.success || asked.data.stream !== true) return bytes;
  return Buffer.from(JSON.stringify({ ...asked.data, structured_outputs: { choice: [say(asked.data)] } }));
}
