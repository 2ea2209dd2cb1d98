/** Turns events that are pushed into events that are read one by one. */
import type { SampleEvent } from "../engine.ts";

/**
 * `push` is begun with the first read, and resolves behind its last event. Its failure is thrown where it would have
 * gone on; leaving early aborts the signal that it was given.
 */
export async function* pulled(
  push: (signal: AbortSignal, take: (events: SampleEvent[]) => void) => Promise<void>,
  signal: AbortSignal,
): AsyncGenerator<SampleEvent> {
  const left = new AbortController();
  const waiting: SampleEvent[] = [];
  let news = Promise.withResolvers<void>();
  let isOver = false;
  const pushed = push(AbortSignal.any([signal, left.signal]), (events) => {
    // The text of a prompt is no longer valid when the event is read later.
    for (const event of events) waiting.push(event.type === "prompt" ? { type: "prompt", token_ids: event.token_ids } : event);
    news.resolve();
  }).finally(() => {
    isOver = true;
    news.resolve();
  });
  // It is awaited, but maybe only after it was rejected.
  pushed.catch(() => undefined);
  try {
    do {
      await news.promise;
      news = Promise.withResolvers();
      yield* waiting.splice(0);
    } while (!isOver || waiting.length > 0);
    await pushed;
  } finally {
    left.abort();
  }
}
