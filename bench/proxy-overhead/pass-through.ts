/** The measure: a bare hono server that hands bytes to undici's `dispatch` and back, looks at none and keeps none. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { RESPONSE_ALREADY_SENT } from "@hono/node-server/utils/response";
import { Hono } from "hono";
import { Agent, type Dispatcher } from "undici";
import { answerParent } from "../child.ts";
import { watching } from "../loop-delay.ts";

const agent = new Agent({ headersTimeout: 0, bodyTimeout: 0 });
let upstream = "";

const app = new Hono<{ Bindings: HttpBindings }>();
app.all("/*", async (context) => {
  await relay(context.env.incoming, context.env.outgoing as ServerResponse);
  return RESPONSE_ALREADY_SENT;
});
const server = createServer(getRequestListener(app.fetch, { overrideGlobalObjects: false }));
server.listen(0, "127.0.0.1");

answerParent({
  ...watching(),
  start: (url: string) => {
    upstream = url;
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  },
});

function relay(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const { host, connection, ...headers } = incoming.headers;
  return new Promise((resolve) => {
    outgoing.once("close", resolve);
    agent.dispatch(
      { origin: upstream, path: incoming.url!, method: incoming.method as Dispatcher.HttpMethod, headers, body: incoming },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, status, { "transfer-encoding": _, connection: __, ...answered }) => {
          outgoing.writeHead(status, answered);
        },
        onResponseData: (controller, chunk) => {
          if (outgoing.write(chunk)) return;
          controller.pause();
          outgoing.once("drain", () => controller.resume());
        },
        onResponseEnd: () => void outgoing.end(),
        onResponseError: () => void outgoing.destroy(),
      },
    );
  });
}
