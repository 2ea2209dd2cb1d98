import assert from "node:assert/strict";
import { test } from "node:test";
import { SharedWork } from "../../../base/host/shared-work.ts";

/** Work that a test ends, or that ends when it is stopped and cleared away. */
function work() {
  const done = Promise.withResolvers<string>();
  const cleared = Promise.withResolvers<void>();
  const begun: AbortSignal[] = [];
  const begin = async (signal: AbortSignal): Promise<string> => {
    begun.push(signal);
    signal.addEventListener("abort", () => void cleared.promise.then(() => done.reject(signal.reason)), { once: true });
    return done.promise;
  };
  return { begin, begun, done, cleared };
}

test("work is done once for all who wait, and goes on for the others when the first one is aborted", async (t) => {
  const shared = new SharedWork<string>();
  const { begin, begun, done } = work();
  const first = new AbortController();
  const left = assert.rejects(shared.join(first.signal, begin), /Ctrl-C/);
  const other = shared.join(t.signal, begin);
  first.abort(new Error("Ctrl-C"));
  await left;
  assert.deepEqual(
    begun.map(({ aborted }) => aborted),
    [false],
  );
  done.resolve("built");
  assert.equal(await other, "built");
});

test("work ends when the last one who waits is gone, who waits until it is cleared away; the next one begins it anew", async (t) => {
  const shared = new SharedWork<string>();
  const { begin, begun, cleared } = work();
  const stops = [new AbortController(), new AbortController()];
  const ends: string[] = [];
  const joined = stops.map(({ signal }, index) => shared.join(signal, begin).catch(({ message }) => ends.push(`${index}: ${message}`)));
  stops[0]?.abort(new Error("a"));
  await joined[0];
  stops[1]?.abort(new Error("b"));
  assert.equal(begun[0]?.aborted, true);
  const next = shared.join(t.signal, async () => "anew");
  cleared.resolve();
  assert.equal(await next, "anew");
  await joined[1];
  assert.deepEqual(ends, ["0: a", "1: b"]);
  assert.equal(begun.length, 1);
});

test("a caller that is aborted already begins nothing", async () => {
  const { begin, begun } = work();
  await assert.rejects(new SharedWork<string>().join(AbortSignal.abort(new Error("Ctrl-C")), begin), /Ctrl-C/);
  assert.deepEqual(begun, []);
});
