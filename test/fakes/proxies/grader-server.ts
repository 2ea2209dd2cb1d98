/** A grader's server of a test: it remembers what it was asked and answers what the test wants. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import type { TestContext } from "node:test";

export type AskedServer = { headers: IncomingMessage["headers"]; path: string; body: Record<string, unknown> };
/** A value is answered as JSON; a function answers by itself. */
export type ServerReply = object | ((response: ServerResponse) => void);

export async function graderServer(t: TestContext, reply: (asked: AskedServer, nth: number) => ServerReply) {
  const asked: AskedServer[] = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse((await buffer(request)).toString());
    const one = { headers: request.headers, path: request.url ?? "", body };
    const answer = reply(one, asked.push(one) - 1);
    if (typeof answer === "function") answer(response);
    else response.setHeader("content-type", "application/json").end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, stop: () => server.close() };
}
