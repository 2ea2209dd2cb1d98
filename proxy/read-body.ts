/** Reads a request body within bounds of size and time. */
import type { IncomingMessage } from "node:http";
import { AlidadeError } from "../errors.ts";
import { withJoined } from "../wire/joined.ts";

/** A context of a million tokens is about 8 MB of text; with images 64 MiB leaves room and bounds what a client can hold. */
const maxBodyBytes = 64 * 1024 * 1024;

/** What `use` makes of the body, which it may not keep. Rejects with `request_invalid` (413) for a larger one, and when the client goes away in the middle of it. */
export function readBody<T>(incoming: IncomingMessage, use: (body: Buffer) => T): Promise<T> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const refuse = (bytes: number): void => {
      // The connection stays, so that the refusal can be read; nobody reads the rest.
      incoming.off("data", take).pause();
      reject(tooLarge(bytes));
    };
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      chunks.push(chunk);
      if (size > maxBodyBytes) refuse(size);
    };
    const finish = (): void => {
      try {
        resolve(withJoined(chunks, use));
      } catch (error) {
        reject(error);
      }
    };
    const declared = Number(incoming.headers["content-length"] ?? 0);
    if (declared > maxBodyBytes) refuse(declared);
    else if (incoming.errored) reject(incoming.errored);
    else incoming.on("data", take).once("end", finish).once("error", reject);
  });
}

function tooLarge(size: number): AlidadeError {
  return new AlidadeError("request_invalid", `the request body has ${size} bytes or more; at most ${maxBodyBytes} are taken`, {
    status: 413,
    param: "body",
  });
}
