import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Agent } from "undici";
import { StreamedResponse } from "../../../engines/http/streamed-response.ts";

type Place = AsyncDisposable & { open(signal?: AbortSignal): StreamedResponse; connections(): number };

async function serving(answer: (outgoing: ServerResponse) => unknown): Promise<Place> {
  let connections = 0;
  const server = createServer((_incoming, outgoing) => void answer(outgoing)).on("connection", () => connections++);
  await once(server.listen(0, "127.0.0.1"), "listening");
  const agent = new Agent();
  return {
    open(signal = new AbortController().signal) {
      const response = new StreamedResponse(signal);
      agent.dispatch({ origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, path: "/", method: "GET" }, response);
      return response;
    },
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      await agent.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test("a body is what was written, whatever its status", async () => {
  await using place = await serving((outgoing) => outgoing.writeHead(418).end("short and stout"));
  const response = place.open();
  assert.equal(await response.status, 418);
  assert.equal(await response.text(), "short and stout");
});

test("of a body that never ends its beginning is read, and the rest is given up", async () => {
  const gone = Promise.withResolvers<void>();
  await using place = await serving((outgoing) => {
    const more = (): void => void (outgoing.destroyed || outgoing.write("no ".repeat(1_000), () => setImmediate(more)));
    outgoing.writeHead(500).once("close", gone.resolve);
    more();
  });
  const text = await place.open().text(64 * 1024);
  assert.ok(text.length > 64 * 1024 && text.length < 1024 * 1024, `${text.length} bytes`);
  await gone.promise;
});

test("what came before a body broke off is read before the failure is thrown", async () => {
  await using place = await serving((outgoing) => outgoing.write("half", () => outgoing.destroy()));
  const response = place.open();
  const read: string[] = [];
  await assert.rejects(
    response.read((chunks) => {
      read.push(Buffer.concat(chunks).toString());
      return false;
    }),
  );
  assert.equal(read.join(""), "half");
});

test("the connection is used again when only the end of a body was left unread", async () => {
  await using place = await serving((outgoing) => {
    outgoing.write("all there is");
    setImmediate(() => outgoing.end());
  });
  for (let request = 0; request < 3; request++) {
    const response = place.open();
    await response.read(() => true);
    response.skipRest();
    // A server that has seen the next request on this connection has ended the one before.
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.equal(place.connections(), 1);
});

test("an abort ends the wait and the request with its reason", async () => {
  const gone = Promise.withResolvers<void>();
  await using place = await serving((outgoing) => {
    outgoing.once("close", gone.resolve);
    outgoing.write("begun");
  });
  const abort = new AbortController();
  const response = place.open(abort.signal);
  const reading = response.read(() => {
    abort.abort(new Error("enough"));
    return false;
  });
  await assert.rejects(reading, /enough/);
  await gone.promise;
});

test("chunks that one read of the socket brought are handed over at once", async () => {
  await using place = await serving((outgoing) => {
    outgoing.socket?.cork();
    for (const piece of ["a", "b", "c"]) outgoing.write(piece);
    outgoing.end();
    outgoing.socket?.uncork();
  });
  const reads: string[][] = [];
  await place.open().read((chunks) => {
    reads.push(chunks.map(String));
    return false;
  });
  assert.deepEqual(reads, [["a", "b", "c"]]);
});

test("what the reader throws is what the read rejects with", async () => {
  await using place = await serving((outgoing) => outgoing.write("begun"));
  const response = place.open();
  const reading = response.read(() => {
    throw new Error("of another shape");
  });
  await assert.rejects(reading, /of another shape/);
  response.abandon();
});

test("an abort before the connection is there rejects the status", async () => {
  await using place = await serving((outgoing) => outgoing.end());
  await assert.rejects(place.open(AbortSignal.abort(new Error("never mind"))).status, /never mind/);
});

test("a server that is not there rejects the status", async () => {
  const agent = new Agent();
  const response = new StreamedResponse(new AbortController().signal);
  agent.dispatch({ origin: "http://127.0.0.1:1", path: "/", method: "GET" }, response);
  await assert.rejects(response.status, /ECONNREFUSED/);
  await agent.destroy();
});
