/** What a result says of the policies that sampled its rollout. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Policy } from "../../../base/schema/policy.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { sampledBy } from "../../../service/nodes/attempt-result.ts";
import { assistant, type CallOptions, LogBuilder, user } from "../../fakes/records/log-builder.ts";

const [v1, v2, v3]: Policy[] = [1, 2, 3].map((step) => ({ version: `v${step}`, step }));

function sampled(...calls: Partial<CallOptions>[]): unknown[] {
  const log = new LogBuilder();
  for (const [at, call] of calls.entries()) log.call({ messages: [user(`u${at}`)], says: assistant("one two"), ...call });
  const { policies, oldest_step, newest_step } = sampledBy(reconstruct(log.entries).calls);
  return [policies.map(({ version }) => version), oldest_step, newest_step];
}

test("the oldest and the newest step are those of all its own calls, and a call that spans an update has two", () => {
  assert.deepEqual(sampled(), [[], null, null]);
  assert.deepEqual(sampled({ policy: v2 }, { policy: v1 }), [["v2", "v1"], 1, 2]);
  assert.deepEqual(sampled({ policy: v1, policy_end: v3 }, { policy: v2 }), [["v1", "v3", "v2"], 1, 3]);
});

test("steps are unknown where that of one call is", () => {
  assert.deepEqual(sampled({ policy: v1 }, { policy: { version: "x", step: null } }), [["v1", "x"], null, null]);
  assert.deepEqual(sampled({ policy: v1 }, { policy: null }), [["v1"], null, null]);
});
