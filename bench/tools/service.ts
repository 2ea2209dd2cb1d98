/** A server of tools that answers from bytes: its own time is as small as it can be. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { answerParent } from "../child.ts";

const texts = { small: "order W1 is open", large: "x".repeat(1_000_000) };

function answerTo(body: string): string | null {
  const { id, method, params } = JSON.parse(body) as { id?: number; method: string; params?: { name: keyof typeof texts } };
  const result = (text: string) => `{"jsonrpc":"2.0","id":${id},"result":${text}}`;
  if (method === "initialize")
    return result('{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}');
  if (method === "tools/list") return result('{"tools":[{"name":"small"},{"name":"large"}]}');
  if (method === "tools/call") return result(`{"content":[{"type":"text","text":"${texts[params?.name ?? "small"]}"}]}`);
  return id === undefined ? null : result("{}");
}

const server = createServer(async (incoming, outgoing) => {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  const answer = answerTo(Buffer.concat(pieces).toString());
  if (answer === null) outgoing.writeHead(202).end();
  else outgoing.writeHead(200, { "content-type": "application/json", "content-length": answer.length }).end(answer);
});
const listening = new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

answerParent({
  port: async () => {
    await listening;
    return (server.address() as AddressInfo).port;
  },
});
