/** Opens streams, each on a connection of its own, and reads them to their end. */
import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import { answerParent } from "../child.ts";
import { conversationOf, type Payload, requestBody } from "../proxy-overhead/payloads.ts";

export type Streams = { url: string; payload: Payload; count: number; keys: string[] | null; rampMs: number };
export type Streamed = { whole: number; failed: string[]; bytes: number };

answerParent({ play });

async function play({ url, payload, count, keys, rampMs }: Streams): Promise<Streamed> {
  const agent = new Agent({ connections: null, headersTimeout: 0, bodyTimeout: 0 });
  const body = requestBody(conversationOf(payload), []);
  const streamed: Streamed = { whole: 0, failed: [], bytes: 0 };
  await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      await sleep((rampMs * index) / count);
      await read(agent, url, `${keys ? `/s/${keys[index]}` : ""}/v1/chat/completions`, body, streamed);
    }),
  );
  await agent.destroy();
  return { ...streamed, failed: streamed.failed.slice(0, 5) };
}

function read(agent: Agent, origin: string, path: string, body: Buffer, streamed: Streamed): Promise<void> {
  return new Promise((resolve) => {
    let tail = "";
    let status = 0;
    const failed = (why: string): void => {
      streamed.failed.push(why);
      resolve();
    };
    agent.dispatch(
      { origin, path, method: "POST", headers: { "content-type": "application/json" }, body },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, statusCode) => {
          status = statusCode;
        },
        onResponseData: (_controller, chunk) => {
          streamed.bytes += chunk.length;
          tail = chunk.toString("latin1", Math.max(0, chunk.length - 40));
        },
        onResponseEnd: () => {
          if (status !== 200 || !tail.includes("[DONE]")) return failed(`${status}: ${tail}`);
          streamed.whole++;
          resolve();
        },
        onResponseError: (_controller, error) => failed(String(error)),
      },
    );
  });
}
