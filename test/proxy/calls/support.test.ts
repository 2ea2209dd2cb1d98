/** Checks that a call which its operator cuts asks which tokens were kept, if the engine tells it, and stores them by hash. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import type { CallFinished } from "../../../base/schema/session-log.ts";
import { exporterNamed } from "../../../exporters/registry.ts";
import { keepNumbers, mostNumberBytes } from "../../../proxy/calls/numbers/keep-numbers.ts";
import { HeldSets, mostSupportIds, sampledSupport } from "../../../proxy/calls/numbers/sampled-support.ts";
import { reconstruct, selectRows } from "../../../reconstruct/index.ts";
import type { ScriptedEngine, ScriptedReply } from "../../fakes/engines/scripted-engine.ts";
import { enginesAt } from "../../fakes/proxies/engines-at.ts";
import { exported } from "../../fakes/records/exported.ts";

const user = (content: string) => ({ role: "user", content });

const turns: ScriptedReply[] = [{ text: "one" }, { text: "cut", finish_reason: "length" }];

async function play(support: ScriptedEngine["support"], sampling: Record<string, number>, more: Record<string, unknown> = {}) {
  await using at = await enginesAt((_, __, index) => turns[index] ?? {}, { a: { ...(support !== null && { support }) } });
  const client = await at.open({ purpose: "train", continuity: "auto", relay: "buffered", sampling });
  const messages: unknown[] = [user("go")];
  for (const _ of turns) messages.push(await client.say(messages, more), user("on"));
  const trajectory = await client.trajectory();
  assert.deepEqual(at.told, []);
  const entries = await client.entries();
  const calls: CallFinished[] = entries.filter((entry) => entry.type === "call_finished");
  return { trajectory, entries, calls, requests: at.engines.a?.requests ?? [], media: at.proxy.sessions.store.media };
}

const cut = { temperature: 1, top_p: 0.9, top_k: 5 };

test("a cut call stores the kept tokens of each sampled one, and its logprobs are those over them", async () => {
  const { trajectory, calls, requests, media } = await play("told", cut);
  for (const [index, { support, sampled_ids, logprob_semantics, support_missing }] of calls.entries()) {
    assert.ok(support && sampled_ids);
    assert.deepEqual([support_missing, logprob_semantics.kind], [undefined, "processed"]);
    assert.deepEqual([requests[index]?.top_logprobs, requests[index]?.return_tokens_as_token_ids], [6, true]);
    const bytes = media?.read(support.sha256) ?? Buffer.alloc(0);
    assert.equal(hash("sha256", bytes), support.sha256);
    const numbers = [...new Int32Array(new Uint8Array(bytes).buffer)];
    const sets = sampled_ids.flatMap((id) => [id, id + 1]);
    assert.deepEqual(numbers, [...sampled_ids.map(() => 2), ...sets]);
  }
  assert.deepEqual(
    trajectory.calls.map(({ support }) => support),
    ["recorded", "recorded"],
  );
  const blobs = trajectory.blobs.filter(({ name }) => name === "sampling_support");
  assert.deepEqual(
    blobs.map(({ ref }) => ref),
    calls.map(({ support }) => support?.sha256),
  );
});

test("rows train a cut call only for a trainer that renormalises, and name its sets at its own tokens", async () => {
  const { trajectory, entries, calls } = await play("told", cut);
  assert.equal(selectRows(trajectory).left_out.truncated_sampling, 2);
  const [row, ...others] = selectRows(trajectory, { readsSupport: true }).rows;
  assert.ok(row);
  assert.deepEqual([others.length, row.trained_tokens], [0, calls.flatMap(({ sampled_ids }) => sampled_ids ?? []).length]);
  const named = (row.support ?? []).flatMap(({ start, length }) => Array.from({ length }, (_, at) => start + at));
  assert.deepEqual(
    named,
    row.loss_mask.flatMap((mask, at) => (mask === 1 ? [at] : [])),
  );
  const graded = reconstruct(entries, { status: "graded", reward: 1 });
  for (const name of ["flat", "verifiers"]) {
    const exporter = exporterNamed(name);
    const left = await exported(exporter, [graded]);
    assert.equal(left.report.left_out.truncated_sampling, 2, name);
    const taken = await exported(exporter, [graded], { own: { kept_sets: "train" } });
    assert.deepEqual(taken.report.left_out, {}, name);
    assert.match(taken.bytes.toString("utf8"), new RegExp(String(calls[1]?.support?.sha256)), name);
  }
  // A trainer without such a field never gets them.
  assert.equal((await exported(exporterNamed("slime"), [graded])).report.left_out.truncated_sampling, 2);
});

test("a call whose file has another number of sets than it has tokens is not trained", async () => {
  const { entries } = await play("told", cut);
  for (const entry of entries) if (entry.type === "call_finished" && entry.support) entry.support.rows += 1;
  const trajectory = reconstruct(entries, { status: "graded", reward: 1 });
  assert.deepEqual([trajectory.calls.map(({ support }) => support), trajectory.blobs], [["misfit", "misfit"], []]);
  assert.equal(selectRows(trajectory, { readsSupport: true }).left_out.truncated_sampling, 2);
});

test("a call says why its kept tokens are unknown, and stays untrained", async () => {
  const cases: [ScriptedEngine["support"], Record<string, number>, Record<string, unknown>, string | undefined][] = [
    [null, cut, {}, "not_told"],
    ["short", cut, {}, "cut_short"],
    ["wrong", cut, {}, "misfit"],
    ["told", { ...cut, top_k: 50 }, {}, "cut_short"],
    ["told", { ...cut, temperature: 0 }, {}, "not_asked"],
    ["told", cut, { logprobs: true, top_logprobs: 1 }, "not_asked"],
    ["told", {}, {}, undefined],
  ];
  for (const [support, sampling, more, reason] of cases) {
    const { trajectory, calls, requests } = await play(support, sampling, more);
    const what = JSON.stringify([support, sampling, more]);
    for (const call of calls) assert.deepEqual([call.support, call.support_missing], [undefined, reason], what);
    if (reason === "not_asked" || reason === "not_told" || reason === undefined)
      assert.ok(
        requests.every((request) => !request.return_tokens_as_token_ids),
        what,
      );
    assert.equal(
      selectRows(trajectory, { readsSupport: true }).left_out.truncated_sampling,
      reason === undefined || sampling.temperature === 0 ? undefined : 2,
      what,
    );
  }
});

test("a set without the sampled token is never made, and one set too few is none", () => {
  assert.deepEqual(sampledSupport([[1, 2], "misfit"], 2), { missing: "misfit" });
  assert.deepEqual(sampledSupport([[1, 2]], 2), { missing: "misfit" });
  assert.deepEqual(sampledSupport([], 2), { missing: "not_told" });
});

test("sets of a call beyond eight million ids are not held, and the call then has none", () => {
  const set = Array.from({ length: 2 ** 20 }, (_, id) => id);
  const held = new HeldSets();
  for (let at = 0; at < mostSupportIds / set.length; at++) held.add(set);
  assert.ok(!held.sets.includes("not_kept"));
  held.add([1]);
  held.add("misfit");
  assert.deepEqual(held.sets.slice(-2), ["not_kept", "not_kept"]);
  assert.deepEqual(sampledSupport(held.sets, held.sets.length), { missing: "not_kept" });
});

test("sets that would fill the session's room beside its log are not kept", () => {
  const kept: string[] = [];
  const media = { keep: (sha256: string) => void kept.push(sha256), read: () => Buffer.alloc(0) };
  const made = sampledSupport([[1]], 1);
  const keep = (numberBytes: number) => keepNumbers({ media, state: { numberBytes } }, { routed: null, supported: made });
  assert.deepEqual([keep(mostNumberBytes - 7), kept.length], [{ support_missing: "not_kept" }, 0]);
  assert.ok(keep(mostNumberBytes - 8).support);
  assert.equal(kept.length, 1);
  assert.deepEqual(keepNumbers({ media: null, state: { numberBytes: 0 } }, { routed: null, supported: made }), {
    support_missing: "not_kept",
  });
});
