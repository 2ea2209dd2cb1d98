import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import type { SessionSpec } from "../../../base/schema/session-spec.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { vllm } from "../../../engines/vllm.ts";
import { newPolicy, type PracticePolicy, score } from "../../../practice/generation.ts";
import { PracticeModel } from "../../../practice/model/practice-model.ts";
import { createPracticeServer } from "../../../practice/server.ts";
import { endOfTurn } from "../../../practice/tokenizer/vocabulary.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { MemoryStore } from "../../../proxy/store/index.ts";
import { selectRows, verifyTrajectory } from "../../../reconstruct/index.ts";
import { Client } from "../../fakes/proxies/proxy-at.ts";
import { startRecordingRelay } from "../../fakes/proxies/recording-relay.ts";

const v1 = { version: "v1", step: 1 };
const v2 = { version: "v2", step: 2 };
const v3 = { version: "v3", step: 3 };
/** Enough for an update in their middle. */
const long = { max_tokens: 150 };

test("of eight generations that a fence interrupts, each goes on under the new weights from its own tokens, and both parts hold", async (t) => {
  await using at = await practiceAt(t);
  const clients = await Promise.all(Array.from({ length: 8 }, () => at.open()));
  const answers = clients.map((client, index) => client.say([{ role: "user", content: `Say number ${index}.` }], long));
  await Promise.all(clients.map((client) => client.sampled(20)));
  const paused = await at.update(2, v2);
  await Promise.all(answers);
  const trajectories = await Promise.all(clients.map((client) => client.trajectory()));
  const split = trajectories.filter(({ calls }) => calls[0]?.policy.parts !== undefined);
  assert.ok(split.length > 3, "the fence fell into the middle of them");
  assert.deepEqual(paused.interrupted, { continued: paused.running, drained: {}, again: {} });
  for (const trajectory of split) {
    const [call] = trajectory.calls;
    assert.deepEqual([call?.policy.start, call?.policy.end, call?.outcome], [v1, v2, "delivered"]);
    const sampled = trajectory.nodes.filter(({ kind }) => kind === "sampled");
    assert.deepEqual(
      sampled.map((node) => [node.policy_version, node.trainable]),
      [
        ["v1", true],
        ["v2", true],
      ],
    );
    await assertOwnWeights(trajectory, t.signal);
    assert.deepEqual(verifyTrajectory(trajectory, at.exchanges()).mismatches, []);
    const [row] = selectRows(trajectory, { oldestStep: 2 }).rows;
    assert.equal(row?.trained_tokens, sampled[1]?.token_ids.length, "the bound on staleness masks the first part alone");
  }
});

test("a second update splits what the first one has split", async (t) => {
  await using at = await practiceAt(t);
  const client = await at.open();
  const answer = client.say([{ role: "user", content: "Say number 1." }], long);
  await client.sampled(20);
  await at.update(2, v2);
  const kept = sampledNow(client);
  await client.sampled(kept + 20);
  await at.update(3, v3);
  await answer;
  const trajectory = await client.trajectory();
  const sampled = trajectory.nodes.filter(({ kind }) => kind === "sampled");
  assert.deepEqual(
    sampled.map((node) => node.policy_version),
    ["v1", "v2", "v3"],
  );
  await assertOwnWeights(trajectory, t.signal);
});

test("a call that cannot go on ends first, or is asked anew, as the pause says; the answer of the pause tells why", async (t) => {
  for (const otherwise of ["drain", "again"] as const) {
    await using at = await practiceAt(t);
    const client = await at.open({ sampling: { presence_penalty: 0.1 } });
    const answer = client.say([{ role: "user", content: "Say number 1." }], long);
    await client.sampled(20);
    const paused = await at.update(2, v2, otherwise);
    await answer;
    const why = { "counts from its first token on (`presence_penalty`)": 1 };
    assert.deepEqual(paused.interrupted, { continued: 0, drained: {}, again: {}, [otherwise === "drain" ? "drained" : "again"]: why });
    const { calls } = await client.trajectory();
    assert.deepEqual(
      [calls[0]?.policy.start, calls[0]?.policy.parts, calls[0]?.tries.length],
      otherwise === "drain" ? [v1, undefined, 1] : [v2, undefined, 2],
    );
  }
});

test("a fence that is resumed without new weights changes nothing but the time", async (t) => {
  await using at = await practiceAt(t);
  const client = await at.open();
  const answer = client.say([{ role: "user", content: "Say number 1." }], long);
  await client.sampled(20);
  const paused = await at.proxy.fences.pause({ mode: "continue", timeoutSeconds: 10, signal: t.signal });
  await at.proxy.fences.resume(paused.fence, t.signal);
  await answer;
  const { nodes, fidelity } = await client.trajectory();
  assert.deepEqual(fidelity.policy_versions, ["v1"]);
  assert.ok(nodes.filter(({ kind }) => kind === "sampled").every(({ trainable }) => trainable));
});

function sampledNow(client: Client): number {
  const { running } = client.proxy.session(client.sessionId);
  return running.inFlight().reduce((sum, { sampledTokens }) => sum + sampledTokens, 0);
}

/** A practice engine whose weights can be exchanged, behind a relay that writes down what passes. */
async function practiceAt(t: TestContext) {
  await using scope = new AsyncDisposableStack();
  const model = new PracticeModel({ name: "practice", seed: 1, maxModelLen: 8192 });
  model.policy = endless(1, 3);
  const server = createPracticeServer(model);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  scope.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const relay = scope.use(await startRecordingRelay(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { broken: true }));
  const engine = vllm.create({ baseUrl: relay.url, apiKey: null });
  scope.defer(() => engine.close());
  const proxy = scope.use(await HarnessProxy.start({ engine, store: new MemoryStore(), version: "test", policy: v1 }));
  const release = scope.move();
  return {
    proxy,
    exchanges: () => relay.exchanges,
    open: async (spec: Partial<SessionSpec> = {}) => {
      const { session, key } = await proxy.openSession({ any_model: true, purpose: "train", ...spec });
      return new Client(proxy, session.id, key);
    },
    update: async (seed: number, policy: { version: string; step: number }, otherwise?: "drain" | "again") => {
      const paused = await proxy.fences.pause({ mode: "continue", otherwise, timeoutSeconds: 60, signal: t.signal });
      model.policy = endless(seed, 3);
      await proxy.fences.setPolicy({ fence: paused.fence, policy, signal: t.signal });
      await proxy.fences.resume(paused.fence, t.signal);
      return paused;
    },
    [Symbol.asyncDispose]: () => release.disposeAsync(),
  };
}

/** Weights of this seed that never end a turn. `waitMs`: for each token, or it is done before a test can look. */
function endless(seed: number, waitMs: number): PracticePolicy {
  const policy = newPolicy({ seed });
  const { transformer } = policy;
  const step = transformer.step.bind(transformer);
  transformer.step = (id, past, wantLogits) => {
    step(id, past, wantLogits);
    if (!wantLogits) return;
    transformer.logits[endOfTurn] = -1e9;
    if (waitMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, waitMs);
  };
  return policy;
}

/** Each part again, by teacher forcing, under the weights that it names. */
async function assertOwnWeights({ nodes }: Trajectory, signal: AbortSignal): Promise<void> {
  const ids = nodes.flatMap(({ token_ids }) => token_ids);
  let start = 0;
  for (const node of nodes) {
    if (node.kind === "sampled") {
      const scored = await score(endless(Number(node.policy_version?.slice(1)), 0), ids.slice(0, start + node.token_ids.length), 0, signal);
      for (const [at, logprob] of (node.logprobs ?? []).entries())
        assert.ok(
          Math.abs((logprob ?? Number.NaN) - (scored[start + at]?.logprob ?? Number.NaN)) < 1e-3,
          `token ${at} of ${node.policy_version}`,
        );
    }
    start += node.token_ids.length;
  }
}
