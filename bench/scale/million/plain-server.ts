/** A server that does nothing but answer. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { answerParent } from "../../child.ts";

const server = createServer((_request, response) => response.end("{}"));

answerParent({
  listen: () =>
    new Promise<string>((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`));
    }),
});
