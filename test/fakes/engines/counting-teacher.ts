/** A teacher that is counted: a server before the practice engine, which knows what was asked to be scored and can hold a request. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import { type PracticeEngineOptions, startPracticeEngine } from "../../../practice/start.ts";

const Asked = z.looseObject({ prompt: z.array(z.number()).optional(), prompt_logprobs: z.number().optional() });

export type CountingTeacher = AsyncDisposable & {
  url: string;
  /** Tokens of each request to score, in the order in which they came; held ones too. */
  scored: number[][];
  /** The request of this number (from 1) gets no answer; resolves when it is there. */
  hold(number: number): Promise<void>;
};

export type Faults = {
  /** Its tokenizer gives other ids to a text. */
  hasOtherTokenizer?: boolean;
  /**
   * Returns the status for the scoring request of this number (from 1). 0: the connection ends without an answer. null: it is answered.
   */
  fails?: (number: number) => number | null;
};

export async function startCountingTeacher(
  options: PracticeEngineOptions,
  { hasOtherTokenizer = false, fails = () => null }: Faults = {},
): Promise<CountingTeacher> {
  const engine = await startPracticeEngine(options);
  const scored: number[][] = [];
  const held = new Map<number, () => void>();
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
    if (request.url === "/v1/completions") {
      const asked = Asked.parse(JSON.parse(body.toString("utf8")));
      if (asked.prompt_logprobs !== undefined && asked.prompt) {
        scored.push(asked.prompt);
        const onHeld = held.get(scored.length);
        if (onHeld) return onHeld();
        const status = fails(scored.length);
        if (status === 0) return void response.destroy();
        if (status !== null) return void response.writeHead(status).end(JSON.stringify({ error: { message: "not this one" } }));
      }
    }
    const init = request.method === "POST" ? { body, headers: { "content-type": "application/json" } } : {};
    const answer = await fetch(`${engine.url}${request.url}`, { method: request.method ?? "GET", ...init });
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "application/json" });
    const text = Buffer.from(await answer.arrayBuffer()).toString("utf8");
    response.end(hasOtherTokenizer && request.url === "/tokenize" ? text.replace(/"tokens":\[\d+/, '"tokens":[0') : text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    scored,
    hold: (number) => new Promise((resolve) => held.set(number, resolve)),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await engine[Symbol.asyncDispose]();
    },
  };
}
