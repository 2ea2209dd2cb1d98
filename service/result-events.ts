/**
 * Results as server-sent events: one for each line, its id is the cursor behind it. A client that comes back with the last id goes
 * on there. The last event is `end`; until then comments keep the connection from being taken for dead.
 */
import { withinTime } from "../base/host/within-time.ts";
import { encodeSse, sseComment } from "../base/wire/sse.ts";
import type { TrainerLedger } from "./callers/trainer-ledger.ts";
import type { PayloadText } from "./delivery.ts";
import type { ReadLines } from "./result-lines.ts";

export type EventOrder = {
  ledger: Pick<TrainerLedger, "version" | "changed" | "isOver">;
  set: string;
  read: ReadLines;
  delivery: PayloadText;
  after: string | null;
  /** Events at most; the stream ends behind them. */
  limit: number;
  heartbeatMs?: number;
};

/** Proxies close what is silent for a minute, some sooner. */
const defaultHeartbeatMs = 15_000;
/** Held in memory for each stream. */
const linesAtOnce = 100;

/** Until all of the set was given; without a word when the signal fires. It reads on as the client does. */
export async function* resultEvents(order: EventOrder, signal: AbortSignal): AsyncGenerator<string> {
  const { ledger, set, read, delivery, limit, heartbeatMs = defaultHeartbeatMs } = order;
  let { after } = order;
  let given = 0;
  let sentAt = performance.now();
  // The headers leave with the first bytes.
  yield sseComment;
  while (!signal.aborted && given < limit) {
    const seen = ledger.version;
    // Asked before the results: what is over then is in them.
    const isOver = await ledger.isOver(set);
    const lines = await read(after, Math.min(limit - given, linesAtOnce));
    for (const { cursor, text, rows } of lines) {
      if (signal.aborted) return;
      yield encodeSse({ id: cursor, data: `${text}${await delivery(rows, signal)}}` });
      after = cursor;
      given += 1;
      sentAt = performance.now();
    }
    if (lines.length > 0) continue;
    if (isOver) return yield encodeSse({ event: "end", data: JSON.stringify({ cursor: after }) });
    let isWoken = false;
    const change = ledger.changed(seen, signal, set).then(
      () => (isWoken = true),
      () => (isWoken = true),
    );
    while (!isWoken) {
      await withinTime(change, sentAt + heartbeatMs - performance.now());
      if (performance.now() - sentAt < heartbeatMs || signal.aborted) continue;
      yield sseComment;
      sentAt = performance.now();
    }
  }
}
