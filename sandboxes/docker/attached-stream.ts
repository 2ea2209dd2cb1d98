/** The engine's framing of an attached process: `u8 stream, 3 zero bytes, u32 length, payload`. */
import type { Readable } from "node:stream";

export type StreamChunk = { stream: "stdout" | "stderr"; bytes: Buffer };

const headerBytes = 8;

/** Yields what the process wrote, piece by piece and without collecting it; a slow reader holds the process up. */
export async function* demultiplex(source: Readable): AsyncGenerator<StreamChunk, void, undefined> {
  let header: Buffer = Buffer.alloc(0);
  let stream: StreamChunk["stream"] = "stdout";
  let left = 0;
  for await (const piece of source as AsyncIterable<Buffer>) {
    let bytes: Buffer = piece;
    while (bytes.length > 0) {
      if (left === 0) {
        const missing = headerBytes - header.length;
        header = Buffer.concat([header, bytes.subarray(0, missing)]);
        bytes = bytes.subarray(missing);
        if (header.length < headerBytes) break;
        stream = header[0] === 2 ? "stderr" : "stdout";
        left = header.readUInt32BE(4);
        header = Buffer.alloc(0);
        continue;
      }
      const payload = bytes.subarray(0, left);
      left -= payload.length;
      bytes = bytes.subarray(payload.length);
      yield { stream, bytes: payload };
    }
  }
}
