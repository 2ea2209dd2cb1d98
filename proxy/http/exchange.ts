/** One request of a harness: what came in, and the ways to answer. `http-exchange.ts` is a connection; `calls/choices.ts` shares one. */
import type { ChoicePlace, Dialect, Headers, HttpAnswer, SseFrame } from "../dialects/index.ts";
import type { RequestBytes } from "./request-bytes.ts";

export interface Exchange {
  readonly dialect: Dialect;
  readonly headers: Headers;
  /** The request's body as it came. */
  readonly bytes: RequestBytes;
  /** The parsed body; undefined until it has been read. */
  body: unknown;
  /** Which of several samples of one request this is; null: the request is for one. */
  readonly choice: ChoicePlace | null;
  /** Resolves when the connection is gone or the answer has left, whichever is first. */
  readonly closed: Promise<void>;
  /** Aborted when the client left before the answer did. */
  readonly signal: AbortSignal;
  readonly isClosed: boolean;
  /** The client has not read what it was sent so far. */
  readonly isFull: boolean;
  readonly headersSent: boolean;
  /**
   * Every byte of the answer was handed to the operating system. A client that closes right after the terminal event
   * (Codex does) is served: its close may be seen before the write's own completion.
   */
  readonly delivered: boolean;
  /** Pieces of a stream that were written so far. */
  readonly written: number;
  /** A whole answer. Resolves when it has left or the client is gone. */
  send(answer: HttpAnswer): Promise<void>;
  openStream(): void;
  /** Writes frames as one piece. Nothing is written to a client that is gone. */
  write(frames: SseFrame[]): void;
  /** Calls once when a connection that was full can take more. */
  onDrain(call: () => void): void;
  /** The last frames. Resolves like `send`. */
  endStream(frames: SseFrame[]): Promise<void>;
}
