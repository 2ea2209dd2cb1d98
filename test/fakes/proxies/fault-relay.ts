/**
 * A relay of HTTP that breaks on demand, for either side of the proxy. Bytes go through as they are until a fault says
 * otherwise; `seen` is text of the answer's body, and the answer goes through up to the end of the frame that has it.
 */
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export type Fault =
  /** Answered by the relay itself; the other side never sees it. */
  | { type: "refuse"; status: number; headers?: Record<string, string> }
  /** The request goes through, and when this resolves the connection is dropped without an answer. */
  | { type: "drop_before_headers"; when: Promise<unknown> }
  /** Dropped in the middle of the answer. */
  | { type: "drop"; seen: string; afterMs?: number }
  /** Ended in the middle of the answer as if that were all. */
  | { type: "end"; seen: string }
  /** Silent from there on, until the client leaves. */
  | { type: "stall"; seen: string };

export type RelayedRequest = { index: number; path: string; body: Record<string, unknown> };

export type FaultRelay = AsyncDisposable & { url: string; requests: RelayedRequest[] };

/** `faultOf` is asked for every POST with a JSON body, before it goes on: what it waits for, the request waits for. */
export async function startFaultRelay(
  target: string,
  faultOf: (request: RelayedRequest) => Fault | null | Promise<Fault | null>,
): Promise<FaultRelay> {
  const requests: RelayedRequest[] = [];
  const server = createServer(async (incoming, outgoing) => {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const sent = Buffer.concat(chunks);
    let fault: Fault | null = null;
    if (incoming.method === "POST" && sent.length > 0) {
      const asked = { index: requests.length, path: incoming.url ?? "/", body: JSON.parse(sent.toString()) as Record<string, unknown> };
      requests.push(asked);
      fault = await faultOf(asked);
    }
    relay(target, incoming, sent, outgoing, fault);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function relay(target: string, incoming: IncomingMessage, sent: Buffer, outgoing: ServerResponse, fault: Fault | null): void {
  if (fault?.type === "refuse") {
    outgoing.writeHead(fault.status, { "content-type": "application/json", ...fault.headers });
    outgoing.end(JSON.stringify({ error: { message: `a fault of the relay: ${fault.status}`, code: fault.status } }));
    return;
  }
  const { host } = new URL(target);
  const upstream = request(
    new URL(incoming.url ?? "/", target),
    // A connection each, so that a drop is one request's alone.
    { method: incoming.method, headers: { ...incoming.headers, host }, agent: false },
    (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, { ...answer.headers, connection: fault ? "close" : "keep-alive" });
      outgoing.flushHeaders();
      passOn(answer, outgoing, fault, () => upstream.destroy());
    },
  );
  upstream.on("error", () => outgoing.destroy());
  outgoing.on("close", () => {
    if (!outgoing.writableFinished) upstream.destroy();
  });
  upstream.end(sent);
  if (fault?.type === "drop_before_headers")
    void fault.when.then(() => {
      upstream.destroy();
      outgoing.destroy();
    });
}

function passOn(answer: IncomingMessage, outgoing: ServerResponse, fault: Fault | null, leave: () => void): void {
  const seen = fault && "seen" in fault ? fault.seen : null;
  let passed = "";
  let isBroken = false;
  answer.setEncoding("utf8");
  answer.on("data", (text: string) => {
    if (isBroken) return;
    const start = passed.length;
    passed += text;
    const at = seen === null ? -1 : passed.indexOf(seen);
    const end = at < 0 ? -1 : passed.indexOf("\n\n", at + (seen?.length ?? 0));
    if (end < 0) return void outgoing.write(text);
    isBroken = true;
    outgoing.write(passed.slice(start, end + 2), () => breakOff(fault, outgoing, leave));
  });
  answer.on("end", () => {
    if (!isBroken) outgoing.end();
  });
  answer.on("error", () => {
    if (!isBroken) outgoing.destroy();
  });
}

function breakOff(fault: Fault | null, outgoing: ServerResponse, leave: () => void): void {
  if (fault?.type === "stall") return;
  const finish = (): void => {
    leave();
    if (fault?.type === "end") outgoing.end();
    else outgoing.destroy();
  };
  if (fault?.type === "drop" && fault.afterMs) setTimeout(finish, fault.afterMs);
  else finish();
}
