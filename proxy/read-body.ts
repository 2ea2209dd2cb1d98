/** Reads a request body within bounds of size and time. */
import type { IncomingMessage } from "node:http";
import { AlidadeError } from "../errors.ts";
import { withJoined } from "../wire/joined.ts";

/** A context of a million tokens is about 8 MB of text; with images 64 MiB leaves room and bounds what a client can hold. */
const maxBodyBytes = 64 * 1024 * 1024;

/** What `use` makes of the body, which it may not keep. Throws `request_invalid` (413) for a larger one, and when the client goes away in the middle of it. */
export async function readBody<T>(incoming: IncomingMessage, use: (body: Buffer) => T): Promise<T> {
  const declared = Number(incoming.headers["content-length"] ?? 0);
  if (declared > maxBodyBytes) throw tooLarge(declared);
  const chunks: Buffer[] = [];
  let size = 0;
  // The connection stays, so that the refusal of a body that is too large can be read.
  for await (const chunk of incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBodyBytes) throw tooLarge(size);
    chunks.push(chunk);
  }
  return withJoined(chunks, use);
}

function tooLarge(size: number): AlidadeError {
  return new AlidadeError("request_invalid", `the request body has ${size} bytes or more; at most ${maxBodyBytes} are taken`, {
    status: 413,
    param: "body",
  });
}
