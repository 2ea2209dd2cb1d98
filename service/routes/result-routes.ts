/** Routes for what came of it: results from a cursor on, as NDJSON, waited for where there are none yet, or as events. */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { Deadline } from "../../base/host/deadline.ts";
import type { Histogram } from "../../base/wire/histogram.ts";
import type { Caller } from "../callers/caller.ts";
import { DeliveryQuery, deliveryOf, type PayloadText } from "../delivery.ts";
import { eventType, openEvents } from "../open-events.ts";
import { linesFrom, type ReadLines, type ResultLine } from "../result-lines.ts";
import type { ServiceParts } from "../service-parts.ts";
import { atStep } from "../stale-rows.ts";
import { defineRoute, type ServiceRoute } from "./route.ts";

/** Proxies close what is silent for a minute. */
const longestWait = 60;
const defaultLimit = 100;

const lineType = "application/x-ndjson";

const wait = z.coerce.number().min(0).max(longestWait).default(0).describe("seconds to wait where there is nothing yet");

const ResultsQuery = DeliveryQuery.extend({
  after: z.string().optional().describe("cursor of the last line that is safe; without it from the beginning"),
  limit: z.coerce.number().int().min(1).max(1_000).optional().describe("lines at most; default: 100, and no limit for events"),
  wait,
  expired: z
    .enum(["refuse", "skip"])
    .default("refuse")
    .describe("where results behind the cursor are expired. refuse: a 410 that names the oldest cursor that is served; skip: what is left"),
  whole_groups: z.stringbool().default(false).describe("a line is a group, when all its rollouts are over"),
});

/** `lag`: gets for each result the time from its end to its reading. */
export function resultRoutes({ blobs }: Pick<ServiceParts, "blobs">, lag: Histogram): ServiceRoute[] {
  return [
    defineRoute({
      method: "get",
      path: "/sets/:id/results",
      roles: ["read"],
      title:
        "Results after a cursor, in their order, one a line (NDJSON) with the cursor behind it, or one an event whose id is the cursor",
      query: ResultsQuery,
      headers: { "Last-Event-ID": "with events: the cursor of the last one that came; it goes before `after`" },
      answers: [lineType, eventType],
      handle: async ({ param, query, signal, context }, caller) => {
        const { ledger } = caller;
        const [set, { after = null, limit, step = null, whole_groups: isWhole, expired: gaps }] = [param("id"), query];
        const spec = await ledger.specOf(set);
        const delivery = await deliveryOf(blobs, query, isWhole, spec);
        const read = measured(linesFrom(ledger, set, { isWhole, spec, step, gaps }), lag);
        if (context.req.header("accept")?.includes(eventType)) {
          const last = context.req.header("last-event-id") || null;
          const order = { ledger, set, read, delivery, after: last ?? after, limit: limit ?? Number.POSITIVE_INFINITY };
          return openEvents(order, caller, last !== null, signal);
        }
        const look = () => read(after, limit ?? defaultLimit);
        const lines = await waitedFor(caller, set, look, (found) => found.length > 0, query.wait, signal);
        return query.payload === "none" ? atOnce(lines) : ndjson(lines, delivery, signal);
      },
    }),
    defineRoute({
      method: "get",
      path: "/sets/:id/rollouts/:rollout",
      roles: ["read"],
      title: "One rollout's result; `result` is null where it is not over",
      query: DeliveryQuery.extend({ wait }),
      handle: async ({ param, query, signal }, caller) => {
        const { ledger } = caller;
        const set = param("id");
        const spec = await ledger.specOf(set);
        const delivery = await deliveryOf(blobs, query, false, spec);
        const look = () => ledger.result(set, param("rollout"));
        const row = await waitedFor(caller, set, look, (found) => found !== null, query.wait, signal);
        const rows = row && atStep([row], spec, query.step ?? null);
        const text = rows === null ? '{"result":null}' : `{"result":${JSON.stringify(rows[0])}${await delivery(rows, signal)}}`;
        return new Response(text, { headers: { "content-type": "application/json" } });
      },
    }),
  ];
}

function measured(read: ReadLines, lag: Histogram): ReadLines {
  return async (after, limit) => {
    const lines = await read(after, limit);
    for (const { rows } of lines) for (const { finished } of rows) lag.observe((Date.now() - finished) / 1000);
    return lines;
  };
}

/** Looks again after each change of the set, until it is enough or the time is over. Throws `too_many_requests` where it would have to wait. */
async function waitedFor<T>(
  { ledger, openPoll }: Caller,
  set: string,
  look: () => Promise<T>,
  isEnough: (found: T) => boolean,
  seconds: number,
  signal: AbortSignal,
): Promise<T> {
  let seen = ledger.version;
  let found = await look();
  if (isEnough(found) || seconds === 0) return found;
  const leave = openPoll();
  try {
    using late = new Deadline(seconds * 1000);
    const either = AbortSignal.any([signal, late.signal]);
    while (!isEnough(found) && !late.signal.aborted) {
      await ledger.changed(seen, either, set).catch(() => undefined);
      signal.throwIfAborted();
      seen = ledger.version;
      found = await look();
    }
    return found;
  } finally {
    leave();
  }
}

/**
 * As one text, for nothing is fetched for it. A stream line by line takes three promises a line; and when V8 has moved a part of one
 * answer to its old generation, all later answers follow it there until the next full collection.
 */
function atOnce(lines: ResultLine[]): Response {
  return new Response(lines.map(({ text }) => `${text}}\n`).join(""), { headers: { "content-type": lineType } });
}

/** Written as the client reads: memory holds one line, with one group at most. */
function ndjson(lines: ResultLine[], delivery: PayloadText, signal: AbortSignal): Response {
  const encoder = new TextEncoder();
  async function* written(): AsyncGenerator<Uint8Array> {
    for (const { text, rows } of lines) {
      if (signal.aborted) throw new AlidadeError("cancelled", "the client has left");
      yield encoder.encode(`${text}${await delivery(rows, signal)}}\n`);
    }
  }
  return new Response(ReadableStream.from(written()) as ReadableStream<Uint8Array>, { headers: { "content-type": lineType } });
}
