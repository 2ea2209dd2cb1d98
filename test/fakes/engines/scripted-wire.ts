/**
 * A scripted server for the wires that are not vLLM's: real HTTP, answers from a script, faults on demand. What a wire
 * looks like is told by the files beside it (scripted-sglang.ts and so on), shaped by exchanges with real servers.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { readJson } from "../../../base/schema/read-json.ts";
import type { ScriptedReply } from "./scripted-engine.ts";

export type Body = Record<string, unknown>;

export type Wire = {
  /** The answer to what is no generation (models, tokenizer, metrics, …); undefined: there is no such route. */
  ask(path: string, body: Body, reply: ScriptedReply): unknown;
  /** Is it the route on which turns are sampled? */
  generates(path: string): boolean;
  /** The whole answer: one JSON document, or the frames of a stream. */
  answer(body: Body, reply: ScriptedReply): { json: unknown } | { frames: string[] };
  /** The body of a refusal. */
  refusal(status: number, message: string, retryAfter?: string): unknown;
};

export type Script = (request: Body) => ScriptedReply;

export class ScriptedWire implements AsyncDisposable {
  /** Generations that were asked for, the probe's left out. */
  readonly requests: Body[] = [];
  /** The same as they stood on the wire. */
  readonly bodies: string[] = [];
  /** Bodies of `/abort_request`. */
  readonly abortRequests: Body[] = [];
  /** Requests whose client went away before the answer was complete. */
  aborted = 0;
  url = "";
  /** Ends the connection behind each refusal, as uvicorn does after a 500. */
  dropsAfterRefusal = false;
  readonly server = createServer((incoming, outgoing) => void this.#serve(incoming, outgoing).catch(() => outgoing.destroy()));
  readonly #wire: Wire;
  readonly #script: Script;

  private constructor(wire: Wire, script: Script) {
    this.#wire = wire;
    this.#script = script;
  }

  static async start(wire: Wire, script: Script): Promise<ScriptedWire> {
    const scripted = new ScriptedWire(wire, script);
    await new Promise<void>((resolve) => scripted.server.listen(0, "127.0.0.1", resolve));
    scripted.url = `http://127.0.0.1:${(scripted.server.address() as AddressInfo).port}`;
    return scripted;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body = readJson(text || "{}") as Body;
    const path = (incoming.url ?? "").split("?")[0] as string;
    if (!this.#wire.generates(path)) {
      if (path === "/abort_request") this.abortRequests.push(body);
      const answer = this.#wire.ask(path, body, this.#script({ probe: true }));
      return answer === undefined ? json(outgoing, 404, { detail: "Not Found" }) : json(outgoing, 200, answer);
    }
    const isProbe = body.max_tokens === 1;
    if (!isProbe) {
      this.requests.push(body);
      this.bodies.push(text);
    }
    await this.#generate(body, this.#script(isProbe ? { ...body, probe: true } : body), outgoing);
  }

  async #generate(body: Body, reply: ScriptedReply, outgoing: ServerResponse): Promise<void> {
    const gone = new Promise<void>((resolve) =>
      outgoing.once("close", () => {
        if (!outgoing.writableEnded) this.aborted++;
        resolve();
      }),
    );
    await Promise.race([reply.before, gone]);
    if (outgoing.destroyed) return;
    if (reply.refuse) {
      const { status, message, retryAfter } = reply.refuse;
      if (retryAfter !== undefined) outgoing.setHeader("retry-after", retryAfter);
      json(outgoing, status, this.#wire.refusal(status, message, retryAfter));
      if (this.dropsAfterRefusal) outgoing.socket?.end();
      return;
    }
    const answer = this.#wire.answer(body, reply);
    const frames = "frames" in answer ? answer.frames : [JSON.stringify(answer.json)];
    outgoing.writeHead(200, { "content-type": "frames" in answer ? "text/event-stream" : "application/json" });
    for (const [index, frame] of frames.entries()) {
      if (reply.cutAfter !== undefined && index >= Math.min(reply.cutAfter, frames.length - 1)) {
        // Half of it reaches the client before the connection breaks.
        await new Promise((resolve) => outgoing.write(frame.slice(0, frame.length / 2), resolve));
        await new Promise((resolve) => setTimeout(resolve, 20));
        return void outgoing.destroy();
      }
      if (index === frames.length - 1) await Promise.race([reply.beforeEnd, gone]);
      if (outgoing.destroyed) return;
      outgoing.write(frame);
    }
    outgoing.end();
  }
}

export function json(outgoing: ServerResponse, status: number, body: unknown): void {
  outgoing.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
