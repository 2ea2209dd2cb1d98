/** A door without a sandbox: every connection to a port of this machine is one of the session's. */
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { HarnessProxy } from "../../../proxy/index.ts";

export type DoorAt = AsyncDisposable & { url: string };

export async function doorAt(proxy: HarnessProxy, sessionId: string): Promise<DoorAt> {
  const session = proxy.session(sessionId);
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    proxy.attach(session, socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
