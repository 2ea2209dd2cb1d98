/** Results as server-sent events. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Claim, SetSpec } from "../../service/ledger/index.ts";
import { resultEvents } from "../../service/result-events.ts";
import { linesFrom } from "../../service/result-lines.ts";
import { serviceAt, serviceGroups } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";

type Event = { id: string | null; event: string; data: { result?: { group_key: string }; group_key?: string; cursor: string } };

/** Asks for events, and reads them one by one. */
async function eventsAt(url: string, { lastId, signal }: { lastId?: string; signal?: AbortSignal } = {}) {
  const headers = { authorization: "Bearer read", accept: "text/event-stream", ...(lastId !== undefined && { "last-event-id": lastId }) };
  const response = await fetch(url, { headers, ...(signal && { signal }) });
  return { status: response.status, type: response.headers.get("content-type"), text: () => response.text(), events: eventsOf(response) };
}

async function* eventsOf(response: Response): AsyncGenerator<Event> {
  let text = "";
  for await (const piece of (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream())) {
    text += piece;
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(text.slice(0, end))?.[1];
      const data = field("data");
      if (data !== undefined) yield { id: field("id") ?? null, event: field("event") ?? "message", data: JSON.parse(data) };
      text = text.slice(end + 2);
    }
  }
}

const next = async (events: AsyncGenerator<Event>): Promise<Event> => (await events.next()).value as Event;

test("results come as events while they end, go on behind the last id, and end when the set does", async (t) => {
  const { url, call, ledger, lease } = await serviceAt(t);
  const set = (await call("PUT", "/sets/a", { samples: 1 })).body.set_id;
  await call("POST", `/sets/${set}/groups`, serviceGroups("g", "h", "i"));
  const at = `${url}/sets/${set}/results`;
  const { events, type } = await eventsAt(at);
  assert.equal(type, "text/event-stream");
  const claims = (await ledger.claim(lease, 3)) as Claim[];
  const seen: Event[] = [];
  for (const claim of claims) {
    await ledger.finish(claim, attemptResult());
    seen.push(await next(events));
  }
  assert.deepEqual(
    seen.map(({ data }) => data.result?.group_key),
    ["g", "h", "i"],
  );
  assert.deepEqual(
    seen.map(({ id }) => id),
    seen.map(({ data }) => data.cursor),
  );
  const [first, , last] = seen.map(({ id }) => id as string);
  const limited = await eventsAt(`${at}?limit=1`);
  assert.equal((await next(limited.events)).id, first);
  assert.equal((await limited.events.next()).done, true, "a limit ends the stream without the event `end`");

  await call("POST", `/sets/${set}/drain`, {});
  assert.deepEqual(await next(events), { id: null, event: "end", data: { cursor: last as string } });
  assert.equal((await events.next()).done, true);
  // The header is newer than the address, which a browser asks for again as it is.
  const again = await eventsAt(`${at}?after=${last}`, { lastId: first as string });
  const groups: string[] = [];
  for await (const { event, data } of again.events) groups.push(data.result?.group_key ?? event);
  assert.deepEqual(groups, ["h", "i", "end"]);
  assert.equal((await eventsAt(at, { lastId: last as string })).status, 204);
  assert.equal((await next((await eventsAt(`${at}?whole_groups=true`)).events)).data.group_key, "g");
});

test("an order that is wrong has a status and opens no stream", async (t) => {
  const { url, call } = await serviceAt(t);
  const set = (await call("PUT", "/sets/a", { samples: 1 })).body.set_id;
  assert.equal((await eventsAt(`${url}/sets/none/results`)).status, 404);
  for (const query of ["after=7", "limit=0", "payload=rows&format=slime"])
    assert.equal((await eventsAt(`${url}/sets/${set}/results?${query}`)).status, 400, query);
  assert.equal((await eventsAt(`${url}/sets/${set}/results`, { lastId: "setother.r1" })).status, 400);
});

test("a stream without results is kept open by comments, and its signal ends it", async (t) => {
  const { ledger } = await serviceAt(t);
  const stop = new AbortController();
  const { set_id: set, spec } = await ledger.putSet("a", SetSpec.parse({}));
  const read = linesFrom(ledger, set, { isWhole: false, spec, step: null, gaps: "refuse" });
  const order = { ledger, set, read, delivery: async () => "", after: null, limit: 9, heartbeatMs: 1 };
  const events = resultEvents(order, stop.signal);
  for (let at = 0; at < 20; at++) assert.deepEqual(await events.next(), { done: false, value: ":\n\n" });
  const last = events.next();
  stop.abort();
  await last;
  assert.equal((await events.next()).done, true);
});
