/** Routes for what came of it: results from a cursor on, as NDJSON, waited for where there are none yet. */
import { z } from "zod";
import { AlidadeError } from "../errors.ts";
import type { Ledger, ResultRow } from "../ledger/index.ts";
import { DeliveryQuery, deliveryOf, type PayloadText } from "./delivery.ts";
import { defineRoute, type ServiceRoute } from "./route.ts";
import type { ServiceParts } from "./service-parts.ts";

/** Proxies close what is silent for a minute. */
const longestWait = 60;

const wait = z.coerce.number().min(0).max(longestWait).default(0).describe("seconds to wait where there is nothing yet");

const ResultsQuery = DeliveryQuery.extend({
  after: z.string().optional().describe("cursor of the last line that is safe; without it from the beginning"),
  limit: z.coerce.number().int().min(1).max(1_000).default(100).describe("lines at most"),
  wait,
  whole_groups: z.stringbool().default(false).describe("a line is a group, when all its rollouts are over"),
});

/** A line before its payload. */
type ResultLine = { cursor: string; rows: ResultRow[]; text: string };

export function resultRoutes({ ledger, blobs }: ServiceParts): ServiceRoute[] {
  return [
    defineRoute({
      method: "get",
      path: "/sets/:id/results",
      role: "read",
      title: "Results after a cursor, in their order, one a line (NDJSON); each line has the cursor behind it",
      query: ResultsQuery,
      handle: async ({ param, query, signal }) => {
        const delivery = deliveryOf(blobs, query, query.whole_groups);
        const look = () => linesOf(ledger, param("id"), query);
        const lines = await waitedFor(ledger, look, (found) => found.length > 0, query.wait, signal);
        return ndjson(lines, delivery, signal);
      },
    }),
    defineRoute({
      method: "get",
      path: "/sets/:id/rollouts/:rollout",
      role: "read",
      title: "One rollout's result; `result` is null where it is not over",
      query: DeliveryQuery.extend({ wait }),
      handle: async ({ param, query, signal }) => {
        const delivery = deliveryOf(blobs, query, false);
        const look = () => ledger.result(param("id"), param("rollout"));
        const row = await waitedFor(ledger, look, (found) => found !== null, query.wait, signal);
        const text = row === null ? '{"result":null}' : `{"result":${JSON.stringify(row)}${await delivery([row], signal)}}`;
        return new Response(text, { headers: { "content-type": "application/json" } });
      },
    }),
  ];
}

async function linesOf(ledger: Ledger, set: string, { after, limit, whole_groups }: z.infer<typeof ResultsQuery>): Promise<ResultLine[]> {
  if (whole_groups) {
    const groups = await ledger.wholeGroups(set, after ?? null, limit);
    return groups.map(({ rows, ...group }) => ({ cursor: group.cursor, rows, text: fieldsOf({ ...group, results: rows }) }));
  }
  const results = await ledger.results(set, after ?? null, limit);
  return results.map(({ cursor, row }) => ({ cursor, rows: [row], text: fieldsOf({ cursor, result: row }) }));
}

/** The object's JSON without its last brace: what its payload adds comes behind it as text. */
function fieldsOf(line: object): string {
  return JSON.stringify(line).slice(0, -1);
}

/** Looks again after each change, until it is enough or the time is over. */
async function waitedFor<T>(
  ledger: Ledger,
  look: () => Promise<T>,
  isEnough: (found: T) => boolean,
  seconds: number,
  signal: AbortSignal,
): Promise<T> {
  const late = AbortSignal.timeout(seconds * 1000);
  const either = AbortSignal.any([signal, late]);
  for (;;) {
    const seen = ledger.version;
    const found = await look();
    if (isEnough(found) || seconds === 0 || late.aborted) return found;
    await ledger.changed(seen, either).catch(() => undefined);
    signal.throwIfAborted();
  }
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
  return new Response(ReadableStream.from(written()) as ReadableStream<Uint8Array>, {
    headers: { "content-type": "application/x-ndjson" },
  });
}
