/** A relay of TCP that drops connections at any moment: before the request goes through, behind it, or in the middle of an answer. */

import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";

/** What becomes of the bytes of one read. `reset`: the connection ends with RST instead of FIN. */
export type Drop = { when: "before" | "halfway" | "behind"; afterMs: number; reset: boolean };

export type DroppingRelay = AsyncDisposable & { url: string; dropped: number };

/** `dropOf` is asked for each read, of either side; null: the bytes go through. */
export async function startDroppingRelay(target: string, dropOf: (side: "client" | "server") => Drop | null): Promise<DroppingRelay> {
  const open = new Set<Socket>();
  const { hostname, port } = new URL(target);
  const relay = { url: "", dropped: 0 };
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    const end = (reset: boolean): void => {
      for (const socket of [client, upstream]) reset ? socket.resetAndDestroy() : socket.destroy();
    };
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        open.delete(socket);
        end(false);
      });
    }
    const pass = (from: Socket, to: Socket, side: "client" | "server"): void => {
      from.on("data", (bytes) => {
        const drop = dropOf(side);
        if (drop === null) return void to.write(bytes);
        relay.dropped++;
        if (drop.when !== "before") to.write(drop.when === "halfway" ? bytes.subarray(0, bytes.length >> 1) : bytes);
        setTimeout(() => end(drop.reset), drop.afterMs);
      });
    };
    pass(client, upstream, "client");
    pass(upstream, client, "server");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  relay.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(relay, {
    async [Symbol.asyncDispose]() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}
