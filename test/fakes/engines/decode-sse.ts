/** The frames of a whole stream, by the decoder that reads engines. */
import { SseDecoder, type SseFrame } from "../../../base/wire/sse.ts";

export async function* decodeSse(
  chunks: AsyncIterable<Uint8Array>,
  limits: { maxEventBytes?: number } = {},
): AsyncGenerator<SseFrame, void, undefined> {
  const decoder = new SseDecoder(limits);
  for await (const chunk of chunks) {
    const frames: SseFrame[] = [];
    try {
      decoder.feed(chunk, (bytes, start, end, event) => {
        frames.push({ ...(event !== "" && { event }), data: bytes.toString("utf8", start, end) });
      });
    } finally {
      yield* frames;
    }
  }
}
