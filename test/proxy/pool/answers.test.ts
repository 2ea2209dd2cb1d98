/** Whether an engine samples again is asked by all rollouts that wait for it: one short question answers all of them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../fakes/machine/until.ts";
import { enginesAt } from "../../fakes/proxies/engines-at.ts";

const waiters = 50;

/** Two engines whose servers are well; what `hangs` holds does not sample. Counts canaries. */
async function twoEngines(hangs: ReadonlyMap<string, Promise<unknown>>) {
  const canaries: string[] = [];
  const at = await enginesAt(
    (name, request) => {
      if (request.probe && request.stream) canaries.push(name);
      const before = hangs.get(name);
      return { text: "hello", ...(before && request.stream && { before }) };
    },
    { a: {}, b: {} },
  );
  return { at, canaries };
}

test("fifty rollouts that wait for an engine ask it one question", async () => {
  const gate = Promise.withResolvers<void>();
  const { at, canaries } = await twoEngines(
    new Map([
      ["a", gate.promise],
      ["b", gate.promise],
    ]),
  );
  await using _ = at;
  const stop = new AbortController();
  const asked = Array.from({ length: waiters }, () => at.proxy.pool.watch.answers(stop.signal));
  await until(() => canaries.length === 2);
  gate.resolve();
  assert.deepEqual(await Promise.all(asked), Array(waiters).fill(true));
  assert.deepEqual(canaries.toSorted(), ["a", "b"]);
});

test("one engine that samples is enough, while another one hangs", async () => {
  const { at } = await twoEngines(new Map([["a", new Promise(() => undefined)]]));
  await using _ = at;
  assert.equal(await at.proxy.pool.watch.answers(new AbortController().signal), true);
  await until(() => at.proxy.pool.named("a").inFlight.size === 0);
});

test("engines whose generators hang behind a well /health do not answer", { timeout: 300_000 }, async () => {
  const never = new Promise(() => undefined);
  const { at } = await twoEngines(
    new Map([
      ["a", never],
      ["b", never],
    ]),
  );
  await using _ = at;
  for (const { engine } of at.proxy.pool.slots) assert.equal((await fetch(`${engine.baseUrl}/health`)).status, 200);
  assert.equal(await at.proxy.pool.watch.answers(new AbortController().signal), false);
});

test("a run that is stopped waits for no engine", async () => {
  const never = new Promise(() => undefined);
  const { at, canaries } = await twoEngines(
    new Map([
      ["a", never],
      ["b", never],
    ]),
  );
  await using _ = at;
  const stop = new AbortController();
  const asked = at.proxy.pool.watch.answers(stop.signal);
  await until(() => canaries.length === 2);
  stop.abort(new Error("Ctrl-C"));
  assert.equal(await asked, false);
});
