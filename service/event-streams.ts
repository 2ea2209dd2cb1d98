/** Streams of results, bounded in number. */
import { AlidadeError } from "../errors.ts";
import { Limiter } from "../host/limiter.ts";
import { type EventOrder, resultEvents } from "./result-events.ts";

export const eventType = "text/event-stream";

/** Each wakes for each change of the ledger. */
const mostStreams = 100;

export class EventStreams {
  readonly #places = new Limiter(mostStreams);

  /** What is wrong has a status, so it is looked for before the stream begins. Throws `too_many_requests`. */
  async open(order: EventOrder, isResumed: boolean, signal: AbortSignal): Promise<Response> {
    const isOver = await order.ledger.isOver(order.set);
    const [more] = await order.read(order.after, 1);
    // A browser comes back behind the end, until it is told that there is no more.
    if (isOver && isResumed && more === undefined) return new Response(null, { status: 204 });
    if (this.#places.counters.active >= mostStreams)
      throw new AlidadeError("too_many_requests", `${mostStreams} streams of results are open: end one, or ask without events`);
    const leave = await this.#places.enter(signal);
    signal.addEventListener("abort", leave, { once: true });
    return new Response(ReadableStream.from(written(order, leave, signal)) as ReadableStream<Uint8Array>, {
      headers: { "content-type": eventType, "cache-control": "no-store", "x-accel-buffering": "no" },
    });
  }
}

async function* written(order: EventOrder, leave: () => void, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  try {
    for await (const text of resultEvents(order, signal)) yield encoder.encode(text);
  } finally {
    leave();
  }
}
