import assert from "node:assert/strict";
import { test } from "node:test";
import type { CallFinished, Opened } from "../../../base/schema/session-log.ts";
import { recordFinished } from "../../../proxy/calls/record-finished.ts";
import { LazyLog } from "../../../proxy/session/lazy-log.ts";
import { Session } from "../../../proxy/session/session.ts";
import { MemoryStore } from "../../../proxy/store/index.ts";
import { LogBuilder, user } from "../../fakes/records/log-builder.ts";

test("an answer that no record can hold fails its call, and the failure is what is recorded", async () => {
  const log = new LogBuilder();
  log.call({ messages: [user("hi")] });
  const finished = log.entries.find((entry) => entry.type === "call_finished") as CallFinished;
  const wrong: Partial<CallFinished>[] = [
    { sampled_ids: [1.5] },
    { logprobs: [Number.NaN] },
    { weights: [{ version: "v", start: -1, end: null }] },
    { stop: {} as unknown as string },
    { usage: { ...finished.usage, prompt_tokens: 1e300 } },
  ];
  for (const one of [{}, ...wrong]) {
    const store = new MemoryStore();
    const session = new Session({ ...(log.entries[0] as Opened), session_id: "ses1" }, new LazyLog(store, "ses1"));
    const failure = await recordFinished(session, [], { ...finished, ...one }, null);
    const [entry, ...more] = await store.read("ses1");
    assert.ok(entry?.type === "call_finished" && more.length === 0);
    const isWrong = Object.keys(one).length > 0;
    assert.deepEqual([failure?.code, entry.error?.code], isWrong ? ["engine_error", "engine_error"] : [undefined, undefined]);
    assert.equal(entry.message === null, isWrong);
  }
});
