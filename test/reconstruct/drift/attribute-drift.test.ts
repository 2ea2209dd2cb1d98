/** Which cause is named for synthetic drift, by the evidence of the record. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { partedBy } from "../../../base/schema/reasons/drift.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { type AttributedDrift, attributeDrift, driftOf, reconstruct, type TrainerLogprobs } from "../../../reconstruct/index.ts";
import { assistant, type CallOptions, LogBuilder, thinking, user } from "../../fakes/records/log-builder.ts";
import { namedCases } from "../named-cases.ts";

type Recomputed = (recorded: (number | null)[], ordinal: number) => (number | null)[];

const away: Recomputed = (recorded) => recorded.map((logprob, at) => logprob && logprob - 2 - (at % 3));
const same: Recomputed = (recorded) => recorded;

/** What a trainer tells of every call with samples. */
function told(trajectory: Trajectory, recomputed: Recomputed, policy_version: string | null = null): Map<string, TrainerLogprobs> {
  const lines = trajectory.calls.flatMap(({ call_id, ordinal }) => {
    const nodes = trajectory.nodes.filter((node) => node.call_id === call_id && node.kind === "sampled");
    const recorded = nodes.flatMap(({ logprobs }) => logprobs ?? []);
    return recorded.length === 0 ? [] : [{ call_id, rollout_id: null, logprobs: recomputed(recorded, ordinal), policy_version }];
  });
  return new Map(lines.map((line) => [line.call_id, line]));
}

function attributed(trajectory: Trajectory, recomputed: Recomputed, policy?: string): AttributedDrift[] {
  return attributeDrift(driftOf(trajectory, told(trajectory, recomputed, policy), 0.05));
}

const long = assistant("one two three four five six seven eight nine ten eleven twelve thirteen");
/** A first call, and one that goes on from it token for token. */
function chat(more: Partial<CallOptions> = {}): Trajectory {
  const log = new LogBuilder();
  const first = log.call({ messages: [user("u")], says: long, ...more });
  log.call({ messages: [user("u"), long, user("on")], says: long, parent: first, ...more });
  return reconstruct(log.entries);
}

const causesOf = (calls: readonly AttributedDrift[]) => calls.map(({ cause }) => cause);

test("what agrees has no cause, and its figures are those of all tokens", () => {
  const [first] = attributed(chat(), (recorded) => recorded.map((logprob, at) => (logprob ?? 0) + (at === 1 ? 0.04 : 0)));
  assert.deepEqual([first?.cause, first?.drifted, first?.compared, first?.max?.at], [null, 0, 14, 1]);
  assert.ok(Math.abs((first?.mean ?? 0) - 0.04 / 14) < 1e-9);
});

test("engine: drift over many tokens of calls whose context is exact", () => {
  assert.deepEqual(causesOf(attributed(chat(), away)), ["engine", "engine"]);
});

test("no engine is named for single tokens of an exact context", () => {
  const calls = attributed(chat(), (recorded) => recorded.map((logprob, at) => (logprob ?? 0) - (at === 9 ? 1 : 0)));
  assert.deepEqual(causesOf(calls), ["not_attributable", "not_attributable"]);
  assert.match(calls[0]?.why ?? "", /1 of 14 tokens differ .*too few/);
});

test("alignment: numbers that fit when they are moved by one token, to either side", () => {
  for (const moved of [(all: (number | null)[]) => [null, ...all.slice(0, -1)], (all: (number | null)[]) => [...all.slice(1), null]])
    assert.deepEqual(causesOf(attributed(chat(), moved)), ["alignment", "alignment"]);
});

test("alignment is not named for a single token at an end, which a move by one leaves out", () => {
  const flat = chat({ logprobs: Array.from({ length: 14 }, () => -0.01) });
  for (const end of [0, 13]) {
    const calls = attributed(flat, (recorded) => recorded.map((logprob, at) => (at === end ? -9 : logprob)));
    assert.deepEqual(
      calls.map(({ drifted, is_shifted }) => [drifted, is_shifted]),
      [
        [1, false],
        [1, false],
      ],
    );
  }
});

test("policy: the call spans a weight update, or the trainer recomputed with other weights", () => {
  const [v1, v2] = [1, 2].map((step) => ({ version: `v${step}`, step }));
  assert.deepEqual(causesOf(attributed(chat({ policy: v1 ?? null, policy_end: v2 ?? null }), away)), ["policy", "policy"]);
  assert.deepEqual(causesOf(attributed(chat({ policy: v1 ?? null }), away, "v2")), ["policy", "policy"]);
  assert.deepEqual(causesOf(attributed(chat({ policy: v1 ?? null }), away, "v1")), ["engine", "engine"]);
});

test("every cause of a branch is the template's, the harness's or not to tell, where calls with an exact context agree", () => {
  const found = new Set<string>();
  for (const { name, log } of namedCases) {
    const trajectory = reconstruct(log().entries);
    const clean = attributed(trajectory, same);
    assert.ok(
      clean.every(({ cause }) => cause === null),
      name,
    );
    const parted = new Map(clean.map(({ ordinal, parted }) => [ordinal, parted]));
    for (const call of attributed(trajectory, (all, ordinal) => (parted.get(ordinal) === null ? all : away(all, ordinal)))) {
      if (call.compared === 0 || call.parted === null) continue;
      const hasControl = clean.some((one) => one.parted === null && one.compared > 0 && one.sampled_by === call.sampled_by);
      const expected = hasControl && !call.other_weights ? (partedBy[call.parted] ?? "not_attributable") : call.cause;
      assert.equal(call.cause, expected, `${name}: ${call.parted}, ${call.why}`);
      if (hasControl) found.add(call.parted);
    }
  }
  assert.ok(
    ["retokenised", "reasoning_dropped", "arguments_changed", "injected", "compacted"].every((one) => found.has(one)),
    [...found].join(),
  );
});

test("where calls with an exact context drift as well, or there is none, neither template nor harness is named", () => {
  const log = new LogBuilder();
  const first = log.call({ messages: [user("u")], says: assistant("ok", thinking("well")) });
  log.call({ messages: [user("another")], says: long, parent: first, policy: { version: "v9", step: 9 } });
  const says = [user("u"), assistant("edited"), user("on")];
  log.call({ messages: says, says: long, parent: first });
  const trajectory = reconstruct(log.entries);
  const last = (calls: AttributedDrift[]) => calls.find(({ ordinal }) => ordinal === 2);
  assert.equal(last(attributed(trajectory, away))?.cause, "engine");
  const alone = new Map([...told(trajectory, away)].slice(-1));
  const [only] = attributeDrift(driftOf(trajectory, alone, 0.05));
  assert.deepEqual([only?.cause, /no call of the same engine and weights/.test(only?.why ?? "")], ["not_attributable", true]);
});

test("what is not the plain distribution's, or longer than the sample, is not compared", () => {
  const grammar = attributed(chat({ grammar: true }), away);
  assert.deepEqual(
    grammar.map(({ not_comparable, compared, cause }) => [not_comparable, compared, cause]),
    [
      ["sampled_under_grammar", 0, null],
      ["sampled_under_grammar", 0, null],
    ],
  );
  assert.equal(attributed(chat(), (all) => [...all, -1])[0]?.not_comparable, "more_logprobs_than_tokens");
});
