/** An amount that sessions share: who waits, who is next, and what a wait that is given up leaves behind. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { FairShare } from "../../../proxy/http/fair-share.ts";

const never = new AbortController().signal;

test("sessions come in turn, one request of each, and each gets its place when one is given back", async () => {
  const share = new FairShare<string>(1, () => 1);
  const order: string[] = [];
  const leave = share.takeNow("a", 1);
  assert.ok(leave);
  assert.equal(share.takeNow("b", 1), null);
  const all = ["a", "a", "b"].map(async (key, at) => {
    const giveBack = await share.take(key, 1, never);
    order.push(key + at);
    giveBack();
    giveBack();
  });
  assert.deepEqual(order, []);
  leave();
  await Promise.all(all);
  assert.deepEqual(order, ["a0", "b2", "a1"]);
  assert.ok(share.takeNow("c", 1), "what was given back twice is there once");
  assert.equal(share.takeNow("d", 1), null);
});

test("a wait that its caller gives up holds up no other, and no wait leaves a listener on its signal", async () => {
  const share = new FairShare<string>(1, () => 1);
  const given = new AbortController();
  const other = new AbortController();
  const leave = share.takeNow("a", 1);
  const first = share.take("b", 1, given.signal);
  const second = share.take("c", 1, other.signal);
  given.abort(new Error("left"));
  await assert.rejects(first, /left/);
  await assert.rejects(share.take("b", 1, given.signal), /left/);
  leave?.();
  (await second)();
  assert.deepEqual([getEventListeners(given.signal, "abort").length, getEventListeners(other.signal, "abort").length], [0, 0]);
  assert.ok(share.takeNow("d", 1));
});
