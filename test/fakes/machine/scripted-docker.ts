/** A container engine on a unix socket that answers as it is told, and keeps what it was asked. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";

export class ScriptedDocker implements AsyncDisposable {
  /** As `DOCKER_HOST` has it. */
  readonly host: string;
  /** Method and path, without the first question that each client asks. */
  readonly asked: string[] = [];
  readonly #server: ReturnType<typeof createServer>;

  private constructor(path: string, answer: (request: IncomingMessage, response: ServerResponse) => void) {
    this.host = `unix://${path}`;
    this.#server = createServer((request, response) => {
      if (request.url === "/_ping") return void response.end("OK");
      this.asked.push(`${request.method} ${request.url}`);
      answer(request, response);
    }).listen(path);
  }

  /** `folder`: where its socket is made. */
  static async start(folder: string, answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<ScriptedDocker> {
    const engine = new ScriptedDocker(join(folder, "docker.sock"), answer);
    await once(engine.#server, "listening");
    return engine;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
