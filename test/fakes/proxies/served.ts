/** A server of a test's own on a free port, until the scope ends. */
import type { Server } from "node:http";
import { closeListener, listenOn } from "../../../proxy/http/listen.ts";

export type Served = AsyncDisposable & { url: string };

export async function served(server: Server): Promise<Served> {
  return { url: await listenOn(server, "127.0.0.1", 0), [Symbol.asyncDispose]: () => closeListener(server) };
}
