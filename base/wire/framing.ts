/**
 * How the documents of a stream stand on the wire: as server-sent events, or as the elements of one JSON array
 * (Google's default without `alt=sse`).
 */
import { encodeSse, onOneLine, type SseFrame } from "./sse.ts";

export type Framing = "sse" | "json-array";

export interface StreamEncoder {
  readonly contentType: string;
  encode(frames: readonly SseFrame[]): string;
  /** What closes the stream, after the last frame. */
  end(): string;
}

export function streamEncoder(framing: Framing): StreamEncoder {
  return framing === "sse" ? sse : new JsonArrayEncoder();
}

const sse: StreamEncoder = {
  contentType: "text/event-stream; charset=utf-8",
  encode: (frames) => frames.reduce((text, frame) => text + encodeSse(frame), ""),
  end: () => "",
};

/** One array over the whole stream: a comma goes in front of every element but the first. */
class JsonArrayEncoder implements StreamEncoder {
  readonly contentType = "application/json; charset=utf-8";
  #isEmpty = true;

  encode(frames: readonly SseFrame[]): string {
    return frames.map((frame) => this.#open() + onOneLine(frame.data)).join("");
  }

  end(): string {
    return this.#isEmpty ? "[]" : "\n]";
  }

  #open(): string {
    const opening = this.#isEmpty ? "[" : "\n,\r\n";
    this.#isEmpty = false;
    return opening;
  }
}
