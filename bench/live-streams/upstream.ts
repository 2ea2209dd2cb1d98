/** An engine that samples at a steady rate: every stream gets its next token once a period, the streams spread over it. */
import { type AddressInfo, createServer, type Socket } from "node:net";
import { answerParent } from "../child.ts";
import { modelOf, type Payload, streamReply } from "../proxy-overhead/payloads.ts";

const periodMs = 250;
/** Each tick serves the streams of its slot. */
const slots = 25;

/** Sizes of the prompt as in payload c. */
const payload: Payload = {
  name: "c",
  title: "live",
  stream: true,
  turns: 1,
  requestBytes: 4_200,
  promptIds: 1_000,
  sampled: 0,
  observationIds: 50,
};

let events: Buffer[] = [];
const head = Buffer.from("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n");
const end = Buffer.from("0\r\n\r\n");
type Stream = { socket: Socket; at: number };
const streams: Set<Stream>[] = Array.from({ length: slots }, () => new Set());
let opened = 0;
let slot = 0;

const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.on("error", () => socket.destroy());
  let text = "";
  socket.on("data", (bytes: Buffer) => {
    text += bytes.toString("latin1");
    const headEnd = text.indexOf("\r\n\r\n");
    const length = Number(/content-length: *(\d+)/i.exec(text)?.[1] ?? 0);
    if (headEnd === -1 || text.length < headEnd + 4 + length) return;
    answer(socket, text);
    text = "";
  });
});
server.listen(0, "127.0.0.1", 8_192);
setInterval(tick, periodMs / slots).unref();

function answer(socket: Socket, request: string): unknown {
  if (request.startsWith("GET /v1/models")) return json(socket, { data: [{ id: modelOf(payload), max_model_len: 200_000 }] });
  if (request.includes('"content":"ping"'))
    return json(socket, {
      prompt_token_ids: [1],
      choices: [
        {
          message: { role: "assistant", content: "x" },
          finish_reason: "length",
          token_ids: [2],
          logprobs: { content: [{ token: "x", logprob: -0.5, top_logprobs: [{ token: "x", logprob: -0.5 }] }] },
        },
      ],
    });
  if (!request.includes('"stream":true')) return json(socket, {});
  socket.write(Buffer.concat([head, events[0]!]));
  return streams[opened++ % slots]!.add({ socket, at: 1 });
}

function tick(): void {
  const due = streams[slot++ % slots]!;
  for (const stream of due) {
    stream.socket.write(events[stream.at++]!);
    if (stream.at < events.length - 2 && !stream.socket.destroyed) continue;
    // Usage and [DONE] come with the last token.
    stream.socket.write(Buffer.concat([...events.slice(stream.at), end]));
    due.delete(stream);
  }
}

function json(socket: Socket, value: unknown): boolean {
  const text = JSON.stringify(value);
  return socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
}

answerParent({
  url: () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  /** From now on a stream has so many tokens. What is asked for. */
  tokens: (count: number): Payload => {
    payload.sampled = count;
    events = streamReply(payload, 0, 1).map((event) => Buffer.from(`${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`));
    return payload;
  },
});
