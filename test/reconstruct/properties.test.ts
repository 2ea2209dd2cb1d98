/** Random conversation trees: what must hold of every session, however its contexts branch. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { LogEntry } from "../../base/schema/session-log.ts";
import { Trajectory } from "../../base/schema/trajectory.ts";
import { reconstruct, selectRows, TokenPaths, verifyRows, verifyTrajectory } from "../../reconstruct/index.ts";
import { assistant, LogBuilder, system, user } from "../fakes/records/log-builder.ts";
import { moves, play } from "./random-sessions.ts";

test("every path is what the engine saw, and every sampled token is there once, trainable or with its reason", () => {
  fc.assert(
    fc.property(moves, (played) => {
      const log = play(played);
      const trajectory = Trajectory.parse(reconstruct(log.entries));
      const paths = new TokenPaths(trajectory);
      const samples = new Map<string, { path: number[]; sampled: number[] }>();
      const trainable = trajectory.nodes.flatMap((node) =>
        node.trainable ? node.token_ids.map((_, at) => node.forced?.[at] !== true) : [],
      );
      assert.equal(trainable.filter(Boolean).length, trajectory.fidelity.trainable_tokens);
      for (const node of trajectory.nodes.filter((each) => each.kind === "sampled")) {
        assert.equal(node.trainable, node.reason === null);
        const sample = samples.get(node.call_id) ?? { path: node.parent_id === null ? [] : paths.tokens(node.parent_id), sampled: [] };
        sample.sampled.push(...node.token_ids);
        samples.set(node.call_id, sample);
      }
      // An engine that broke off before the first token has said its prompt and nothing else.
      const spoken = [...log.exchanges].filter(([, { token_ids }]) => token_ids.length > 0);
      assert.deepEqual([...samples.keys()].sort(), spoken.map(([id]) => id).sort());
      for (const [id, exchange] of spoken)
        assert.deepEqual(samples.get(id), { path: exchange.prompt_token_ids, sampled: exchange.token_ids });
      assert.deepEqual(verifyTrajectory(trajectory, [...log.exchanges.values()]).mismatches, []);
    }),
    { numRuns: 300 },
  );
});

test("siblings never begin alike, so shared contexts are there once", () => {
  fc.assert(
    fc.property(moves, (played) => {
      const { nodes } = reconstruct(play(played).entries);
      const seen = new Set<string>();
      for (const node of nodes) {
        assert.ok(node.token_ids.length > 0);
        if (node.kind === "sampled") continue;
        const key = `${node.parent_id} ${node.token_ids[0]}`;
        assert.ok(!seen.has(key), `two branches of ${node.parent_id} begin with the same token`);
        seen.add(key);
      }
    }),
  );
});

test("the order of the log does not matter", () => {
  const shuffled = moves.chain((played) => {
    const { entries } = play(played);
    return fc.tuple(fc.constant(entries), fc.shuffledSubarray(entries, { minLength: entries.length, maxLength: entries.length }));
  });
  fc.assert(
    fc.property(shuffled, ([entries, mixed]: [LogEntry[], LogEntry[]]) => {
      assert.deepEqual(reconstruct(mixed), reconstruct(entries));
    }),
  );
});

test("a one-token edit anywhere in a context is never merged", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(3), { minLength: 1, maxLength: 6 }), fc.nat(), (words, where) => {
      const log = new LogBuilder();
      const says = assistant(words.join(" "));
      const start = [system("s"), user("u")];
      const a = log.call({ messages: start, says });
      const next = [...start, says, user("v")];
      const prompt = log.prompt(next);
      const end = log.prompt(start).length + log.said(says).length;
      const at = where % end;
      log.call({ messages: next, prompt: prompt.with(at, 5000), parent: a });
      const trajectory = reconstruct(log.entries);
      assert.notEqual(trajectory.calls[1]?.match, "exact");
      assert.equal(trajectory.calls[1]?.difference?.position, at);
      assert.deepEqual(verifyTrajectory(trajectory, [...log.exchanges.values()]).mismatches, []);
    }),
  );
});

test("the proof fails for a re-rendered context, an edited token, a wrong logprob and a second claim", () => {
  const log = new LogBuilder();
  const says = assistant("a b c");
  const a = log.call({ messages: [user("u")], says });
  log.call({ messages: [user("u"), says, user("v")], parent: a });
  const trajectory = reconstruct(log.entries);
  const exchanges = [...log.exchanges.values()];
  assert.equal(verifyTrajectory(trajectory, exchanges).ok, true);
  const [first, second] = exchanges as [(typeof exchanges)[0], (typeof exchanges)[0]];
  const wrong = [
    [first, { ...second, prompt_token_ids: second.prompt_token_ids.with(2, 9999) }],
    [first, { ...second, prompt_token_ids: second.prompt_token_ids.slice(1) }],
    [first, { ...second, token_ids: second.token_ids.with(0, 9999) }],
    [first, { ...second, logprobs: (second.logprobs ?? []).with(0, -9) }],
    [first],
  ];
  for (const recording of wrong) assert.equal(verifyTrajectory(trajectory, recording).ok, false);
  const claimed = structuredClone(trajectory);
  for (const node of claimed.nodes) if (node.kind === "observation") node.trainable = true;
  assert.equal(verifyTrajectory(claimed, exchanges).ok, false);
  const twice = structuredClone([...selectRows(trajectory).rows]);
  assert.notDeepEqual(verifyRows(trajectory, [...twice, ...twice]), []);
});
