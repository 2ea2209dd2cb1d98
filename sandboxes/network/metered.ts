/** Counts and bounds what goes over one connection out of a sandbox. */
import type { Socket } from "node:net";
import { Transform } from "node:stream";
import { RefusedConnection } from "./refused-connection.ts";

/** A server that thinks longer than this before its first byte is rare; a connection that is left open is not. */
export const idleMs = 120_000;

export type Meter = {
  /** A stage of a pipeline on this connection. It fails when the bytes are spent. */
  stage(): Transform;
};

/** `count` gets the bytes that were sent and received since it was called last; false where there may be no more. */
export function metered(upstream: Socket, count: (sent: number, received: number) => boolean, idle = idleMs): Meter {
  let sent = 0;
  let received = 0;
  const settle = (): boolean => {
    const [moreSent, moreReceived] = [upstream.bytesWritten - sent, upstream.bytesRead - received];
    sent += moreSent;
    received += moreReceived;
    return count(moreSent, moreReceived);
  };
  const timer = setTimeout(() => upstream.destroy(), idle);
  upstream.once("close", () => {
    clearTimeout(timer);
    settle();
  });
  const transform = (chunk: Buffer, _encoding: BufferEncoding, done: (error: Error | null, chunk?: Buffer) => void) => {
    timer.refresh();
    if (settle()) done(null, chunk);
    else done(new RefusedConnection("bytes_spent"));
  };
  return { stage: () => new Transform({ transform }) };
}
