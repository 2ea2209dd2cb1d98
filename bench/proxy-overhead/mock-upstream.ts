/**
 * An engine that costs next to nothing: vLLM's wire from bytes that were made beforehand, written by hand onto the
 * socket. A stream has one HTTP chunk an event, as uvicorn sends it, all of them at once: the question is what a proxy
 * costs and not how fast a model samples.
 */

import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";
import { answerParent } from "../child.ts";
import { modelOf, type Payload, payloadOf, payloads, promptIds, streamReply, turnMarker, wholeReply } from "./payloads.ts";

/** What is asked for here: nothing streamed, a chunk a token, and the chunks that alidade asks for where no reader follows. */
const paces = ["whole", 1, 64] as const;
const canned = new Map<string, Buffer>();
const server = createServer((socket) => serve(socket));
server.listen(0, "127.0.0.1");

answerParent({
  url: () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  /** Makes the answers, and says how large they are on the wire. */
  prepare: () => {
    for (const payload of payloads)
      for (let turn = 0; turn < payload.turns; turn++)
        for (const pace of paces) canned.set(keyOf(modelOf(payload), turnMarker(turn), pace), cannedAnswer(payload, turn, pace));
    return payloads.map((payload) => {
      const middle = Math.floor(payload.turns / 2);
      const bytes = (pace: Pace) => canned.get(keyOf(modelOf(payload), turnMarker(middle), pace))!.length;
      return {
        name: payload.name,
        whole: bytes("whole"),
        stream: bytes(1),
        paced: bytes(64),
        promptIds: promptIds(payload, middle).length,
      };
    });
  },
});

/** Whole, or a stream of so many tokens a chunk (the request's `stream_interval`). */
type Pace = "whole" | number;

function keyOf(model: string, marker: string, pace: Pace): string {
  return `${model} ${marker} ${pace}`;
}

function cannedAnswer(payload: Payload, turn: number, pace: Pace): Buffer {
  if (pace === "whole") return json(wholeReply(payload, turn));
  const chunks = streamReply(payload, turn, pace).map((event) => `${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`);
  return Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n${chunks.join("")}0\r\n\r\n`,
  );
}

function json(text: string): Buffer {
  return Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
}

function serve(socket: Socket): void {
  socket.setNoDelay(true);
  socket.on("error", () => socket.destroy());
  let pieces: Buffer[] = [];
  let have = 0;
  /** Length of the request that is coming in, once its head is there. */
  let want: number | null = null;
  socket.on("data", (piece: Buffer) => {
    pieces.push(piece);
    have += piece.length;
    if (want === null) {
      pieces = [Buffer.concat(pieces)];
      want = requestLength(pieces[0]!);
    }
    if (want === null || have < want) return;
    const request = Buffer.concat(pieces);
    pieces = [];
    have = 0;
    want = null;
    socket.write(answerTo(request));
  });
}

function requestLength(bytes: Buffer): number | null {
  const end = bytes.indexOf("\r\n\r\n");
  if (end === -1) return null;
  const length = /\r\ncontent-length: *(\d+)/i.exec(bytes.toString("latin1", 0, end))?.[1];
  return end + 4 + Number(length ?? 0);
}

/** In front of the messages stand the fields that say how to sample and to answer. */
const headBytes = 4_000;

function answerTo(request: Buffer): Buffer {
  const path = request.toString("latin1", 0, request.indexOf("\r")).split(" ")[1];
  if (path === "/v1/models")
    return json(
      JSON.stringify({ data: [...payloads, payloadOf("s")].map((payload) => ({ id: modelOf(payload), max_model_len: 200_000 })) }),
    );
  if (path === "/version") return json(JSON.stringify({ version: "mock" }));
  if (request.includes('"content":"ping"')) return json(probeAnswer);
  const head = request.toString("latin1", 0, headBytes);
  const model = /"model": ?"([^"]+)"/.exec(head)?.[1] ?? "";
  const marker = request.lastIndexOf("[turn ");
  const pace = request.includes('"stream":true') ? Number(/"stream_interval":(\d+)/.exec(head)?.[1] ?? 1) : "whole";
  const key = keyOf(model, request.toString("latin1", marker, marker + turnMarker(0).length), pace);
  if (!canned.has(key) && model === modelOf(payloadOf("s"))) canned.set(key, cannedAnswer(payloadOf("s"), turnOf(key), pace));
  return canned.get(key) ?? json(JSON.stringify({ error: { message: `nothing is canned for ${key}` } }));
}

/** The session of 60 calls is made as it is asked for: it would be half of all that is prepared. */
function turnOf(key: string): number {
  return Number(/\[turn (\d+)\]/.exec(key)?.[1]);
}

/** What the vllm adapter's probe wants to see: ids and a logprob. */
const probeAnswer = JSON.stringify({
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
