/**
 * A plain relay between proxy and engine that writes down what passes: the witness of the end-to-end proof. It shares
 * no code with the proxy, the adapter or the engine, and changes no byte.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type RecordedExchange = {
  request: Record<string, unknown>;
  prompt_token_ids: number[];
  token_ids: number[];
  logprobs: (number | null)[] | null;
  status: number;
};

export type RecordingRelay = AsyncDisposable & { url: string; exchanges: RecordedExchange[] };

/** `broken`: an answer that its reader left is written down too. */
export async function startRecordingRelay(engineUrl: string, { broken = false } = {}): Promise<RecordingRelay> {
  const exchanges: RecordedExchange[] = [];
  const server = createServer((incoming, outgoing) => relay({ engineUrl, broken, exchanges }, incoming, outgoing));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    exchanges,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type RelayAt = { engineUrl: string; broken: boolean; exchanges: RecordedExchange[] };

function relay({ engineUrl, broken, exchanges }: RelayAt, incoming: IncomingMessage, outgoing: ServerResponse): void {
  const sent: Buffer[] = [];
  const upstream = request(
    new URL(incoming.url ?? "/", engineUrl),
    // A connection each: on a kept one a request may meet the engine's close.
    { method: incoming.method, headers: { ...incoming.headers, host: new URL(engineUrl).host }, agent: false },
    (answer) => {
      const got: Buffer[] = [];
      let isWritten = incoming.url !== "/v1/chat/completions";
      const write = (): void => {
        if (!isWritten) writeDown(Buffer.concat(sent).toString(), Buffer.concat(got).toString(), answer.statusCode ?? 0, exchanges);
        isWritten = true;
      };
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on("data", (chunk: Buffer) => {
        got.push(chunk);
        // Before it is passed on: behind it nothing waits for the end of the body, and the session may be over.
        if (Buffer.concat(got.slice(-2)).includes(lastEvent)) write();
        outgoing.write(chunk);
      });
      answer.on("end", () => {
        write();
        outgoing.end();
      });
      if (broken) answer.on("close", write);
      answer.on("error", () => outgoing.destroy());
    },
  );
  upstream.on("error", () => outgoing.destroy());
  outgoing.on("close", () => {
    if (!outgoing.writableEnded) upstream.destroy();
  });
  incoming.on("data", (chunk: Buffer) => {
    sent.push(chunk);
    upstream.write(chunk);
  });
  incoming.on("end", () => upstream.end());
}

const lastEvent = "data: [DONE]";

type WireChunk = {
  prompt_token_ids?: number[] | null;
  choices?: { token_ids?: number[] | null; logprobs?: { content?: { logprob: number | null }[] | null } | null }[];
};

function writeDown(sent: string, got: string, status: number, exchanges: RecordedExchange[]): void {
  const body = JSON.parse(sent) as Record<string, unknown>;
  // The proxy's probe asks without a stream; what is sampled for a harness is streamed.
  if (body.stream !== true) return;
  const exchange: RecordedExchange = { request: body, prompt_token_ids: [], token_ids: [], logprobs: [], status };
  for (const block of got.split("\n\n")) {
    // The last one of an answer that was left may be cut.
    if (!block.startsWith("data: ") || block === lastEvent || !block.endsWith("}")) continue;
    const chunk = JSON.parse(block.slice("data: ".length)) as WireChunk;
    if (chunk.prompt_token_ids?.length) exchange.prompt_token_ids = chunk.prompt_token_ids;
    const choice = chunk.choices?.[0];
    exchange.token_ids.push(...(choice?.token_ids ?? []));
    exchange.logprobs?.push(...(choice?.logprobs?.content ?? []).map((entry) => entry.logprob));
  }
  exchanges.push(exchange);
}
