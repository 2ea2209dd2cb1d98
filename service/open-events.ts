/** A stream of results as an answer. */
import type { Caller } from "./callers/caller.ts";
import { type EventOrder, resultEvents } from "./result-events.ts";

export const eventType = "text/event-stream";

/** What is wrong has a status, so it is looked for before the stream begins. Throws `too_many_requests`. */
export async function openEvents(order: EventOrder, caller: Caller, isResumed: boolean, signal: AbortSignal): Promise<Response> {
  const isOver = await order.ledger.isOver(order.set);
  const [more] = await order.read(order.after, 1);
  // A browser comes back behind the end, until it is told that there is no more.
  if (isOver && isResumed && more === undefined) return new Response(null, { status: 204 });
  const leave = caller.openStream();
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  return new Response(ReadableStream.from(written(order, leave, signal)) as ReadableStream<Uint8Array>, {
    headers: { "content-type": eventType, "cache-control": "no-store", "x-accel-buffering": "no" },
  });
}

async function* written(order: EventOrder, leave: () => void, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder();
  try {
    for await (const text of resultEvents(order, signal)) yield encoder.encode(text);
  } finally {
    leave();
  }
}
