/** The load generator: plays sessions over kept connections, one call after the other in each, several at once. */
import { Client } from "undici";
import { answerParent } from "../child.ts";
import { type Conversation, conversationOf, type PayloadName, payloadOf, requestBody } from "./payloads.ts";
import { type Wire, type WireName, wires } from "./wires.ts";

export type Play = {
  url: string;
  payload: PayloadName;
  /** `growing`: every turn of a session. `one-shot`: its middle turn only, as the first call of a session. */
  shape: "growing" | "one-shot";
  sessions: number;
  /** Sessions at a time, each with a connection of its own. */
  concurrency: number;
  /** What the requests are written in. Absent: chat. */
  wire?: WireName;
  /** A key a session, for the path; null where the target knows none. */
  keys: string[] | null;
  /** A header that names the session instead, for a target that knows none by its path. */
  sessionHeader?: string;
};

export type Played = { calls: number; seconds: number; latencies: number[]; bytesSent: number; bytesReceived: number };

answerParent({ play });

/** Sessions of two plays have two names. */
let plays = 0;

async function play({
  url,
  payload: name,
  shape,
  sessions,
  concurrency,
  keys,
  sessionHeader,
  wire: wireName = "openai-chat",
}: Play): Promise<Played> {
  const payload = payloadOf(name);
  const wire = wires[wireName];
  const conversation = conversationOf(payload, wireName);
  const played: Played = { calls: 0, seconds: 0, latencies: [], bytesSent: 0, bytesReceived: 0 };
  let next = 0;
  const playId = plays++;
  const lane = async (): Promise<void> => {
    const client = new Client(url, { pipelining: 1, headersTimeout: 30_000, bodyTimeout: 30_000 });
    for (let session = next++; session < sessions; session = next++) {
      const path = `${keys ? `/s/${keys[session]}` : ""}${wire.path}`;
      const headers = sessionHeader ? { [sessionHeader]: `bench-${playId}-${session}` } : {};
      const ids = shape === "growing" ? [] : foreignIds(Math.floor(payload.turns / 2));
      const turns = shape === "growing" ? payload.turns : 1;
      for (let turn = 0; turn < turns; turn++) ids.push(await call(client, { path, headers }, wire, conversation, ids, played));
    }
    await client.close();
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: concurrency }, lane));
  played.seconds = (performance.now() - start) / 1000;
  return played;
}

/** History that this session's proxy has not seen. */
function foreignIds(count: number): Buffer[] {
  return Array.from({ length: count }, (_, index) => Buffer.from(`call_elsewhere_${index}`));
}

/** One call, timed from before it is sent to its last byte. Returns the id of the tool call that it was answered with. */
type Target = { path: string; headers: Record<string, string> };

async function call(
  client: Client,
  target: Target,
  wire: Wire,
  conversation: Conversation,
  ids: Buffer[],
  played: Played,
): Promise<Buffer> {
  const body = requestBody(conversation, ids);
  const start = performance.now();
  const answer = await send(client, target, body);
  played.latencies.push(performance.now() - start);
  played.calls++;
  played.bytesSent += body.length;
  played.bytesReceived += answer.length;
  const id = toolCallId(answer, wire);
  if (id === null) throw new Error(`an answer without a tool call: ${answer.toString("utf8", 0, 500)}`);
  return id;
}

function send(client: Client, { path, headers }: Target, body: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let status = 0;
    client.dispatch(
      { path, method: "POST", headers: { "content-type": "application/json", ...headers }, body },
      {
        onRequestStart: () => undefined,
        onResponseStart: (_controller, statusCode) => {
          status = statusCode;
        },
        onResponseData: (_controller, chunk) => void chunks.push(chunk),
        onResponseEnd: () => {
          const answer = Buffer.concat(chunks);
          if (status === 200) resolve(answer);
          else reject(new Error(`${path.slice(0, 6)}… answered ${status}: ${answer.toString("utf8", 0, 500)}`));
        },
        onResponseError: (_controller, error) => reject(error),
      },
    );
  });
}

/** Found in the bytes, so that the load generator parses nothing: whole or streamed, the id is the first one after. */
function toolCallId(answer: Buffer, { idBehind, idField }: Wire): Buffer | null {
  const calls = answer.indexOf(idBehind);
  const start = calls === -1 ? -1 : answer.indexOf(idField, calls);
  const from = start + idField.length;
  return start === -1 ? null : Buffer.from(answer.subarray(from, answer.indexOf('"', from)));
}
