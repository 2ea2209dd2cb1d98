/** The audit against a model that is a function: every logprob depends on all the tokens before it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../../base/schema/message.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { auditTrajectory, reconstruct } from "../../reconstruct/index.ts";
import { assistant, type CallOptions, LogBuilder, user } from "../fakes/records/log-builder.ts";

const tolerance = 1e-4;

test("a session whose every sample was made in the context of its path passes", async () => {
  const audited = await audit(session());
  assert.deepEqual(
    audited.calls.map((call) => [call.status, call.wrong, call.compared > 0]),
    [
      ["ok", 0, true],
      ["ok", 0, true],
    ],
  );
  assert.equal(audited.worst, 0);
});

test("each path is scored once, and a call whose tokens stand on several paths is compared once", async () => {
  const log = new LogBuilder();
  const first = say(log, { messages: [user("go")], says: assistant("right away") });
  const said = [user("go"), assistant("right away")];
  for (const next of ["left", "right"]) say(log, { messages: [...said, user(next)], parent: first, says: assistant(`going ${next}`) });
  const asked: number[][] = [];
  const audited = await audit(reconstruct(log.entries), {}, asked);
  assert.equal(asked.length, 2);
  assert.equal(audited.compared, 3 * 3);
  assert.equal(audited.worst, 0);
});

test("an edited token is found, in the call that sampled it and in those that come after it", async () => {
  const edited = structuredClone(session());
  const node = edited.nodes.find((one) => one.kind === "sampled");
  assert.ok(node);
  node.token_ids[0] = (node.token_ids[0] as number) + 1;
  assert.deepEqual(statuses(await audit(edited)), ["mismatch", "mismatch"]);
});

test("an edit between two samples is found in the later one only", async () => {
  const edited = structuredClone(session());
  const node = edited.nodes.find((one) => one.kind === "observation");
  assert.ok(node);
  node.token_ids[0] = (node.token_ids[0] as number) + 1;
  assert.deepEqual(statuses(await audit(edited)), ["ok", "mismatch"]);
});

test("a turn put behind a rendering that it was not sampled after is found", async () => {
  const log = new LogBuilder();
  // Three sampled words come back as two other tokens: the second call saw the rendering, never the sample.
  const sampled = [90, 91, 92];
  const first = say(log, { messages: [user("go")], says: assistant("ok"), sampled });
  say(log, { messages: [user("go"), assistant("ok"), user("on")], parent: first, says: assistant("fine") });
  const honest = reconstruct(log.entries);
  assert.deepEqual(statuses(await audit(honest)), ["ok", "ok"]);
  const merged = structuredClone(honest);
  const [sample, second] = [sampledNode(merged, 0), sampledNode(merged, 1)];
  second.parent_id = sample.node_id;
  assert.deepEqual(statuses(await audit(merged)), ["ok", "mismatch"]);
});

test("logprobs that belong to their neighbours are found", async () => {
  const shifted = structuredClone(session());
  for (const node of shifted.nodes) node.logprobs?.push(node.logprobs.shift() ?? null);
  assert.deepEqual(statuses(await audit(shifted)), ["mismatch", "mismatch"]);
});

test("what was sampled by another rule than the plain softmax is not comparable, and never passed", async () => {
  const cases: [string, (trajectory: Trajectory) => void][] = [
    ["sampled_under_grammar", (one) => semantics(one, { grammar: true })],
    ...[
      {},
      { top_p: 1 },
      { temperature: 0.7 },
      { temperature: 1, top_p: 0.9 },
      { temperature: 1, top_k: 5 },
      { temperature: 1, min_p: 0.1 },
    ].map((sampling): [string, (trajectory: Trajectory) => void] => [
      "processed_sampling",
      (one) => {
        semantics(one, { kind: "processed" });
        for (const call of one.calls) call.sampling = sampling;
      },
    ]),
    [
      "logprob_kind_unknown",
      (one) => {
        semantics(one, { kind: null });
        for (const call of one.calls) call.sampling = { temperature: 0.7 };
      },
    ],
    ["no_logprob", (one) => nodes(one, (node) => ({ logprobs: node.logprobs?.map(() => null) ?? null }))],
    ["misaligned", (one) => nodes(one, (node) => ({ reason: node.kind === "sampled" ? "misaligned" : null }))],
  ];
  for (const [reason, change] of cases) {
    const changed = structuredClone(session());
    change(changed);
    const audited = await audit(changed);
    assert.deepEqual(
      [statuses(audited), audited.calls.map((call) => call.reason), audited.compared],
      [["not_comparable", "not_comparable"], [reason, reason], 0],
    );
  }
});

test("a call whose context holds a picture is not comparable, and the calls before it are compared", async () => {
  const picture: Message = { role: "user", parts: [{ type: "image", url: "data:image/png;base64,AA==" }] };
  const result: Message = {
    role: "tool",
    parts: [{ type: "tool_result", call_id: "1", content: [{ type: "image", url: "data:image/png;base64,AA==" }], is_error: false }],
  };
  for (const seen of [picture, result]) {
    const log = new LogBuilder();
    const first = say(log, { messages: [user("go")], says: assistant("ok") });
    const second = say(log, { messages: [user("go"), assistant("ok"), seen], parent: first, says: assistant("I see") });
    say(log, { messages: [user("go"), assistant("ok"), seen, assistant("I see"), user("and?")], parent: second, says: assistant("no") });
    const audited = await audit(reconstruct(log.entries));
    assert.deepEqual(
      audited.calls.map(({ status, reason }) => [status, reason]),
      [
        ["ok", null],
        ["not_comparable", "images"],
        ["not_comparable", "images"],
      ],
    );
  }
});

test("processed logprobs of plain sampling are those of the softmax, and are compared", async () => {
  // Training takes a parameter that the call does not state as no cut. So the audit does.
  for (const sampling of [{ temperature: 1, top_p: 1, top_k: -1 }, { temperature: 1 }]) {
    const processed = structuredClone(session());
    semantics(processed, { kind: "processed" });
    for (const call of processed.calls) call.sampling = sampling;
    assert.deepEqual(statuses(await audit(processed)), ["ok", "ok"]);
  }
});

test("logprobs from before a grammar's mask are those of the softmax, and are compared", async () => {
  const masked = structuredClone(session());
  semantics(masked, { grammar: true, grammar_logprobs: "unmasked" });
  assert.deepEqual(statuses(await audit(masked)), ["ok", "ok"]);
});

test("only the calls of the asked policy version are compared", async () => {
  const audited = await audit(session({ policy: { version: "v2", step: 2 }, policy_end: { version: "v2", step: 2 } }), {
    policyVersion: "v2",
  });
  assert.deepEqual(
    audited.calls.map((call) => call.reason),
    ["other_policy_version", null],
  );
});

test("a token that the scorer cannot score is a difference", async () => {
  const audited = await auditTrajectory(session(), async (ids) => ids.map(() => null), { tolerance });
  assert.deepEqual(statuses(audited), ["mismatch", "mismatch"]);
  assert.equal(audited.worst, Number.POSITIVE_INFINITY);
});

/** A logprob that no other context gives: a hash of the tokens so far. */
function logprobOf(ids: number[], end: number): number {
  let hash = 17;
  for (const id of ids.slice(0, end)) hash = (hash * 31 + id) % 1_000_003;
  return -hash / 1_000_003;
}

const score = async (ids: number[]) => ids.map((_, at) => (at === 0 ? null : logprobOf(ids, at + 1)));

/** A call whose recorded logprobs are those of the model. */
function say(log: LogBuilder, options: CallOptions): string {
  const prompt = log.prompt(options.messages);
  const sampled = options.sampled ?? log.said(options.says ?? assistant("ok"));
  const whole = [...prompt, ...sampled];
  return log.call({ ...options, sampled, logprobs: sampled.map((_, at) => logprobOf(whole, prompt.length + at + 1)) });
}

function session(second: Partial<CallOptions> = {}): Trajectory {
  const log = new LogBuilder();
  const first = say(log, { messages: [user("go")], says: assistant("right away") });
  say(log, { messages: [user("go"), assistant("right away"), user("and then")], parent: first, says: assistant("done now"), ...second });
  return reconstruct(log.entries);
}

function audit(trajectory: Trajectory, options: { policyVersion?: string } = {}, asked: number[][] = []) {
  const counted = (ids: number[]) => {
    asked.push(ids);
    return score(ids);
  };
  return auditTrajectory(trajectory, counted, { tolerance, ...options });
}

const statuses = (audited: Awaited<ReturnType<typeof audit>>) => audited.calls.map((call) => call.status);

function sampledNode(trajectory: Trajectory, index: number) {
  const call = trajectory.calls[index];
  const node = trajectory.nodes.find((one) => one.kind === "sampled" && one.call_id === call?.call_id);
  assert.ok(node);
  return node;
}

function semantics(trajectory: Trajectory, said: Partial<Trajectory["calls"][number]["logprob_semantics"]>): void {
  for (const call of trajectory.calls) Object.assign(call.logprob_semantics, said);
}

function nodes(trajectory: Trajectory, change: (node: Trajectory["nodes"][number]) => Partial<Trajectory["nodes"][number]>): void {
  for (const node of trajectory.nodes) Object.assign(node, change(node));
}
