/** What a place that becomes free costs, with thousands of calls in line. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { EngineLease } from "../../../proxy/pool/engine-lease.ts";
import type { EngineSlot } from "../../../proxy/pool/engine-slot.ts";
import { type WaitingCall, WaitingLine } from "../../../proxy/pool/waiting-line.ts";
import { enginesAt } from "../../fakes/proxies/engines-at.ts";

/** Calls for some of two engines, each of one place, and how often they were asked. */
async function lineAt(t: TestContext) {
  const at = await enginesAt(() => ({ text: "ok" }), { a: { callsAtOnce: 1 }, b: { callsAtOnce: 1 } });
  t.after(async () => at[Symbol.asyncDispose]());
  const [a, b] = ["a", "b"].map((name) => at.proxy.pool.named(name)) as [EngineSlot, EngineSlot];
  const line = new WaitingLine(60);
  const asked = { choose: 0, mayTake: 0 };
  const take = (slot: EngineSlot): EngineLease => {
    const [onPause, onCancel, sampled] = [() => () => undefined, () => undefined, () => 0];
    const onInterrupt = () => ({ goes: "on" as const, why: null });
    const lease = new EngineLease({
      model: "m",
      routed: null,
      slot,
      isOfPolicy: true,
      isPinned: false,
      onPause,
      onCancel,
      onInterrupt,
      sampled,
    });
    slot.inFlight.add(lease);
    return lease;
  };
  const wait = (slot: EngineSlot, engines: readonly EngineSlot[], signal: AbortSignal): Promise<EngineLease | null> => {
    const choose = (): EngineSlot => {
      asked.choose += 1;
      return engines.find(({ hasRoom }) => hasRoom) ?? slot;
    };
    const mayTake = (one: EngineSlot): boolean => {
      asked.mayTake += 1;
      return engines.includes(one);
    };
    const call: WaitingCall = { signal, onPause: () => () => undefined, choose, mayTake, take };
    return line.wait(call, slot, Date.now());
  };
  const free = (slot: EngineSlot): void => {
    slot.inFlight.clear();
    line.fill(slot);
  };
  return { a, b, line, asked, take, wait, free };
}

test("a place that no call in line may take is offered to each of them once, until the engines change", async (t) => {
  const { a, b, line, asked, take, wait, free } = await lineAt(t);
  const over = new AbortController();
  take(a);
  const waiting = Array.from({ length: 50 }, () => wait(a, [a], over.signal));
  for (let times = 0; times < 20; times++) free(b);
  assert.deepEqual(asked, { choose: 0, mayTake: 50 });
  free(a);
  assert.deepEqual([asked.choose, a.waiting, a.inFlight.size], [1, 49, 1], "its own line asks the first alone");
  line.lookAgain([a, b]);
  assert.equal(a.waiting, 0);
  over.abort();
  assert.equal((await Promise.all(waiting)).filter((lease) => lease === null).length, 49);
});

test("an engine at which none waits takes the first call that it may, and places that are given are in no line", async (t) => {
  const { a, b, asked, take, wait, free } = await lineAt(t);
  const over = new AbortController();
  take(a);
  const own = wait(a, [a], over.signal);
  const either = [1, 2].map(() => wait(a, [b, a], over.signal));
  free(b);
  assert.equal((await either[0])?.slot, b);
  assert.deepEqual([a.waiting, asked.choose], [2, 1]);
  a.grant(2);
  free(a);
  assert.equal(a.waiting, 0, "both before one of them has woken");
  assert.deepEqual(
    (await Promise.all([own, either[1]])).map((lease) => lease?.slot.name),
    ["a", "a"],
  );
});
