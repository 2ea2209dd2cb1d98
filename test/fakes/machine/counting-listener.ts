/** A server on loopback that answers everything, and counts who came: what must reach nothing is pointed at it. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export class CountingListener implements AsyncDisposable {
  /** Connections, whether they asked for anything or not. */
  connections = 0;
  readonly #server = createServer((_, response) => void response.end("{}"));

  static async start(): Promise<CountingListener> {
    const listener = new CountingListener();
    listener.#server.on("connection", () => {
      listener.connections += 1;
    });
    listener.#server.listen(0, "127.0.0.1");
    await once(listener.#server, "listening");
    return listener;
  }

  /** `127.0.0.1:port` */
  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
