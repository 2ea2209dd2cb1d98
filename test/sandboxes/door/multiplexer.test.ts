import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { PassThrough } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { type MultiplexedStream, Multiplexer, maxStreams, windowBytes } from "../../../sandboxes/door/multiplexer.ts";

type Pair = { near: Multiplexer; far: Multiplexer; accepted: () => Promise<MultiplexedStream> };

/** Two ends joined by pipes that pass the bytes on in pieces of a size that no frame has. */
function pair(onStream?: (stream: MultiplexedStream) => void): Pair {
  const toFar = new PassThrough({ highWaterMark: 4_096 });
  const toNear = new PassThrough({ highWaterMark: 4_096 });
  const waiting: ((stream: MultiplexedStream) => void)[] = [];
  const arrived: MultiplexedStream[] = [];
  const near = new Multiplexer(toFar);
  const far = new Multiplexer(toNear, {
    onStream: onStream ?? ((stream) => (waiting.length > 0 ? waiting.shift()?.(stream) : arrived.push(stream))),
  });
  const inPieces = async (source: PassThrough, target: Multiplexer) => {
    for await (const chunk of source) for (let at = 0; at < chunk.length; at += 1_013) target.feed(chunk.subarray(at, at + 1_013));
  };
  void inPieces(toFar, far);
  void inPieces(toNear, near);
  const accepted = () =>
    new Promise<MultiplexedStream>((resolve) => {
      const stream = arrived.shift();
      if (stream === undefined) waiting.push(resolve);
      else resolve(stream);
    });
  return { near, far, accepted };
}

function opened(multiplexer: Multiplexer): MultiplexedStream {
  const stream = multiplexer.open();
  assert.ok(stream);
  return stream;
}

test("whatever is written on any stream arrives on that stream, in order and whole", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.integer({ min: 0, max: 200_000 }), { maxLength: 4 }), { minLength: 1, maxLength: 8 }),
      async (plan) => {
        const { near, far } = pair((stream) => void stream.pipe(stream));
        await Promise.all(
          plan.map(async (sizes) => {
            const stream = opened(near);
            const sent = sizes.map((size) => randomBytes(size));
            for (const chunk of sent) stream.write(chunk);
            stream.end();
            assert.ok((await buffer(stream)).equals(Buffer.concat(sent)));
          }),
        );
        await sleep(1);
        assert.deepEqual([near.openStreams, far.openStreams], [0, 0]);
      },
    ),
    { numRuns: 25 },
  );
});

test("a reader that stops holds at most a window, and holds no other reader up", async () => {
  const { near, accepted } = pair();
  const stuck = opened(near);
  const stuckFar = await accepted();
  let written = 0;
  const filling = (async () => {
    for (let index = 0; index < 40; index += 1) {
      if (!stuck.write(Buffer.alloc(50_000))) await once(stuck, "drain");
      written += 50_000;
    }
    stuck.end();
  })();
  const other = opened(near);
  const otherFar = await accepted();
  other.end("hello");
  assert.equal(await text(otherFar), "hello");
  await sleep(20);
  const held = written;
  assert.ok(held <= windowBytes + 200_000, `${held} bytes were taken`);
  assert.equal((await buffer(stuckFar)).length, 2_000_000);
  await filling;
});

test("closing one end while data is on its way delivers what was sent", async () => {
  const { near, accepted } = pair();
  const stream = opened(near);
  const far = await accepted();
  stream.write(Buffer.alloc(100_000));
  stream.destroySoon();
  await sleep(10);
  assert.equal((await buffer(far)).length, 100_000);
});

test("a reset is a reset at the other end, and the streams are gone", async () => {
  const { near, far, accepted } = pair();
  const stream = opened(near);
  const other = await accepted();
  const failed = new Promise((resolve) => other.once("error", resolve));
  stream.resetAndDestroy();
  assert.equal(((await failed) as NodeJS.ErrnoException).code, "ECONNRESET");
  assert.deepEqual([near.openStreams, far.openStreams], [0, 0]);
});

test("streams over the limit are refused", async () => {
  const { near } = pair(() => {});
  for (let index = 0; index < maxStreams; index += 1) opened(near);
  assert.equal(near.open(), null);
});

test("when the transport ends every stream is reset", async () => {
  const { near, far, accepted } = pair();
  opened(near);
  const stream = await accepted();
  const failed = new Promise((resolve) => stream.once("error", resolve));
  far.close();
  assert.equal(((await failed) as NodeJS.ErrnoException).code, "ECONNRESET");
  assert.equal(far.openStreams, 0);
});

test("bytes that are no frames are an error and not a guess", () => {
  const frame = (id: number, type: number, length: number, payload = Buffer.alloc(0)) => {
    const header = Buffer.alloc(9);
    header.writeUInt32BE(id, 0);
    header.writeUInt8(type, 4);
    header.writeUInt32BE(length, 5);
    return Buffer.concat([header, payload]);
  };
  const end = () => new Multiplexer(new PassThrough(), { onStream: () => {} });
  assert.throws(() => end().feed(frame(1, 2, 0xffffffff)), /frame of 4294967295 bytes/);
  assert.throws(() => end().feed(frame(1, 99, 0)), /unknown type 99/);
  const flooded = end();
  flooded.feed(frame(1, 1, 0));
  const piece = frame(1, 2, 16_384, Buffer.alloc(16_384));
  assert.throws(() => {
    // No reader: more than the window and what a reader would have taken beforehand.
    for (let index = 0; index < 30; index += 1) flooded.feed(piece);
  }, /more than its window/);
  end().feed(frame(7, 2, 3, Buffer.from("abc"))); // a stream that was reset here: ignored
});

test("Node's HTTP server takes a stream for a socket, time-outs too", async () => {
  const server = createServer((incoming, response) => response.end(`answer to ${incoming.url}`));
  server.keepAliveTimeout = 50;
  const closed = Promise.withResolvers<void>();
  const { near } = pair((stream) => {
    stream.on("close", () => closed.resolve());
    server.emit("connection", stream);
  });
  const stream = opened(near);
  const outgoing = request({ createConnection: () => stream, path: "/x", headers: { connection: "keep-alive" } });
  outgoing.end();
  const [response] = await once(outgoing, "response");
  assert.equal(await text(response), "answer to /x");
  await closed.promise;
});
