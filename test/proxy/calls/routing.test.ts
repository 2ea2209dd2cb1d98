/**
 * Checks that a call asks for the experts of its tokens if the engine tells them, and stores them by hash. The harness sees no
 * difference.
 */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { test } from "node:test";
import type { Policy } from "../../../base/schema/policy.ts";
import type { CallFinished, LogLine } from "../../../base/schema/session-log.ts";
import { readRouting } from "../../../engines/vllm/routing.ts";
import { wholeAnswer } from "../../../engines/vllm/whole-answer.ts";
import { keepNumbers, mostNumberBytes } from "../../../proxy/calls/numbers/keep-numbers.ts";
import { type SampledRouting, sampledRouting } from "../../../proxy/calls/numbers/sampled-routing.ts";
import { reconstruct, selectRows } from "../../../reconstruct/index.ts";
import { isRouted } from "../../../reconstruct/rows/place-routing.ts";
import { bytesOf, expertsAt, type NpyType, npyOf } from "../../fakes/engines/npy.ts";
import type { ScriptedReply } from "../../fakes/engines/scripted-engine.ts";
import { enginesAt } from "../../fakes/proxies/engines-at.ts";
import { assistant, LogBuilder, user as userMessage } from "../../fakes/records/log-builder.ts";

const user = (content: string) => ({ role: "user", content });

const turns: ScriptedReply[] = [
  { reasoning: "hm", text: "look: é", tool_calls: [{ name: "bash", arguments: '{"a":1,  "b": {"arguments": {}}}' }] },
  {
    text: "two",
    tool_calls: [
      { name: "bash", arguments: '{ "b":2}' },
      { name: "bash", arguments: '{"b":2}' },
    ],
  },
  { text: "cut", finish_reason: "length" },
];

function finished(entries: LogLine[]): CallFinished[] {
  return entries.filter((entry) => entry.type === "call_finished");
}

const named: Policy = { version: "v1", step: 1 };

/** Returns the messages that a harness gets, without the ids of its calls, and the log. */
async function play(routing: "told" | "wrong" | null, relay: "buffered" | "live" = "buffered", policy: Policy | null = named) {
  await using at = await enginesAt((_, __, index) => turns[index] ?? {}, { a: { policy, ...(routing !== null && { routing }) } });
  const client = await at.open({ purpose: "train", continuity: "auto", relay });
  const messages: unknown[] = [user("go")];
  const seen: string[] = [];
  for (const _ of turns) {
    const answer = await client.say(messages, {
      tools: [{ type: "function", function: { name: "bash", parameters: { type: "object" } } }],
    });
    seen.push(JSON.stringify(answer).replace(/"id":"[^"]*"/g, ""));
    messages.push(answer, user("on"));
  }
  const { media } = at.proxy.sessions.store;
  const trajectory = await client.trajectory();
  assert.deepEqual(at.told, []);
  return { seen, trajectory, calls: finished(await client.entries()), requests: at.engines.a?.requests ?? [], media };
}

test("a harness sees the same turns whether the engine tells experts or not, and the record has the same tokens and logprobs", async () => {
  const [told, silent] = [await play("told"), await play(null)];
  assert.deepEqual(told.seen, silent.seen);
  assert.ok(told.requests.every((request) => request.stream === undefined) && silent.requests.every(({ stream }) => stream));
  const sampled = ({ calls }: typeof told) =>
    calls.map(({ prompt_ids, sampled_ids, logprobs, finish_reason, usage, message }) => ({
      prompt: prompt_ids?.new,
      ...{ sampled_ids, logprobs, finish_reason, usage, message },
    }));
  assert.deepEqual(sampled(told), sampled(silent));
  assert.ok(silent.calls.every(({ routing, routing_missing }) => routing === undefined && routing_missing === undefined));
});

test("later turns ask for and store the rows of their own tokens alone: all turns together have one row for each token but the last", async () => {
  const { calls, trajectory, requests, media } = await play("told");
  let end = 0;
  for (const [index, { routing }] of calls.entries()) {
    assert.ok(routing);
    assert.deepEqual([routing.start, routing.layers, routing.top_k, routing.dtype], [end, 2, 2, "uint8"]);
    assert.equal(requests[index]?.routed_experts_prompt_start ?? 0, end);
    end = routing.start + routing.rows;
    const bytes = media?.read(routing.sha256) ?? Buffer.alloc(0);
    assert.deepEqual([hash("sha256", bytes), bytes.length], [routing.sha256, routing.rows * 4]);
  }
  const [row, ...others] = selectRows(trajectory).rows;
  assert.ok(row);
  assert.deepEqual(
    [others.length, end, row.routing?.map(({ length }) => length)],
    [0, row.token_ids.length - 1, calls.map((call) => call.routing?.rows)],
  );
  assert.deepEqual(new Set(trajectory.blobs.map(({ ref }) => ref)), new Set(calls.map((call) => call.routing?.sha256)));
  assert.deepEqual(
    trajectory.calls.map(({ routing }) => routing),
    ["recorded", "recorded", "recorded"],
  );
});

test("a call asks for and stores all its experts if an earlier call had other weights or unnamed ones", async () => {
  const unnamed = await play("told", "buffered", null);
  await using at = await enginesAt((_, __, index) => turns[index] ?? {}, { a: { routing: "told", policy: named } });
  const client = await at.open({ purpose: "train", continuity: "auto", relay: "buffered" });
  const messages: unknown[] = [user("go")];
  messages.push(await client.say(messages), user("on"));
  const answer = await at.control("PUT", "/policy", { version: "v2", step: 2 });
  assert.equal(answer.status, 200);
  await client.say(messages);
  const calls = finished(await client.entries());
  assert.deepEqual(
    calls.map(({ policy }) => policy?.version),
    ["v1", "v2"],
  );
  for (const all of [unnamed.calls, calls]) assert.deepEqual(new Set(all.map(({ routing }) => routing?.start)), new Set([0]));
  assert.ok((at.engines.a?.requests ?? []).every((request) => !request.routed_experts_prompt_start));
  // Tokens that both calls share keep the experts of the first call.
  for (const trajectory of [unnamed.trajectory, await client.trajectory()]) assert.ok([...selectRows(trajectory).rows].every(isRouted));
});

test("tokens of the session's own calls never get another model's experts, even if their own are not on record", async () => {
  assert.deepEqual(expertsOfPrompt(["judge", "own"]), ["own"]);
  assert.deepEqual(expertsOfPrompt(["judge", null]), []);
  assert.deepEqual(expertsOfPrompt(["judge"]), ["judge"]);
});

/** Plays one conversation once for each call. `judge`: another model. null: no experts. Returns the experts of the prompt's tokens. */
function expertsOfPrompt(calls: readonly (string | null)[]): string[] {
  const log = new LogBuilder();
  const says = assistant("yes");
  const experts = (sha256: string) => ({ sha256, start: 0, base_call_id: null, layers: 1, top_k: 1, dtype: "uint8" as const });
  for (const sha256 of calls) {
    const id = log.call({ messages: [userMessage("go")], says });
    for (const entry of log.entries) {
      if (entry.type === "tried" && entry.call_id === id && sha256 === "judge") entry.other_policy = true;
      if (entry.type !== "call_finished" || entry.call_id !== id || sha256 === null) continue;
      const tokens = (entry.prompt_ids?.base_len ?? 0) + (entry.prompt_ids?.new.length ?? 0) + (entry.sampled_ids?.length ?? 0);
      entry.routing = { ...experts(sha256), rows: tokens - 1 };
    }
  }
  const { nodes, blobs } = reconstruct(log.entries);
  const prompt = nodes.find(({ kind }) => kind === "prompt");
  assert.ok(prompt);
  return blobs.filter(({ node_id }) => node_id === prompt.node_id).map(({ ref }) => ref);
}

test("a live session has no experts on record, and what does not fit the tokens is left out, each with its reason", async () => {
  const live = await play("told", "live");
  assert.deepEqual(
    live.trajectory.calls.map(({ routing }) => routing),
    ["streamed", "streamed", "streamed"],
  );
  const wrong = await play("wrong");
  assert.deepEqual(
    wrong.trajectory.calls.map(({ routing }) => routing),
    ["misfit", "misfit", "misfit"],
  );
  for (const { trajectory } of [live, wrong]) {
    assert.deepEqual(trajectory.blobs, []);
    assert.ok([...selectRows(trajectory).rows].every((row) => row.routing === undefined && row.trained_tokens > 0));
  }
});

test("a file of numpy is read in each type that vLLM takes, and anything else is none", () => {
  const values = [65, 66, 67].map((id, at) => expertsAt(id, at));
  for (const dtype of ["uint8", "uint16", "int32"] as const) {
    const read = readRouting(npyOf(values, dtype).toString("base64"), 7);
    assert.deepEqual(
      { ...read, bytes: [...(read?.bytes ?? [])] },
      {
        ...{ start: 7, rows: 3, layers: 2, top_k: 2, dtype },
        bytes: [...bytesOf(values.flat(2), dtype)],
      },
    );
  }
  const file = npyOf(values);
  const others = [Buffer.alloc(0), file.subarray(0, -1), Buffer.concat([file, Buffer.from([0])]), file.subarray(1), npyOf([])];
  for (const other of others) assert.equal(readRouting(other.toString("base64"), 0), null);
  assert.equal(readRouting(Buffer.from(file.toString("latin1").replace("|u1", "<f4"), "latin1").toString("base64"), 0), null);
});

test("an answer that writes more objects than it calls tools is read at bounded cost", () => {
  const text = '"arguments": {'.repeat(10_000);
  const answer = (said: string) =>
    JSON.stringify({
      choices: [
        {
          message: { tool_calls: [{ function: { name: "x", arguments: "{}" } }] },
          logprobs: { content: [{ bytes: [...Buffer.from(said)] }] },
        },
      ],
    });
  assert.equal(wholeAnswer(answer(text)).experts, null);
  assert.equal(wholeAnswer("no JSON").chunk.toString(), "no JSON");
});

test("braces that never close cost a bounded number of looks at the rest, however many calls the turn has", () => {
  const written = '{ "a": 1}';
  const calls = Array.from({ length: 20 }, () => ({ function: { name: "x", arguments: '{"a": 1}' } }));
  const argumentsBehind = (open: number) => {
    const text = Buffer.from(`${"{ ".repeat(open)}${written} ${"behind ".repeat(200)}`);
    const message = { tool_calls: calls };
    const { chunk } = wholeAnswer(JSON.stringify({ choices: [{ message, logprobs: { content: [{ bytes: [...text] }] } }] }));
    return JSON.parse(chunk.toString()).choices[0].delta.tool_calls[0].function.arguments;
  };
  assert.equal(argumentsBehind(20), written);
  assert.equal(argumentsBehind(200), '{"a": 1}');
});

test("where the number of experts is unknown, a byte names up to 256 of them, and a number below 0 is none", () => {
  const take = (values: number[], dtype: NpyType) =>
    sampledRouting({
      facts: null,
      told: { start: 0, rows: 2, layers: 1, top_k: 2, dtype, bytes: bytesOf(values, dtype) },
      ...{ isUnasked: false, tokens: 3, asked: null, known: null },
    });
  const isTaken = (routing: SampledRouting | null) => routing !== null && !("missing" in routing);
  assert.ok(isTaken(take([0, 127, 128, 255], "uint8")));
  assert.ok(isTaken(take([0, 256, 32_768, 65_535], "uint16")));
  assert.ok(isTaken(take([0, 1, 2, 70_000], "int32")));
  assert.deepEqual(take([0, 1, 2, -1], "int32"), { missing: "misfit" });
});

test("a whole answer that fails may have cost a sample: it is not asked for again, and what it sampled is unknown", async () => {
  const refuse = { status: 500, message: "boom" };
  await using at = await enginesAt((_, request, index) => (index === 1 && !request.probe ? { refuse } : { text: "ok" }), {
    a: { routing: "told" },
  });
  const client = await at.open({ purpose: "train" });
  await client.say([user("go")]);
  assert.equal((await client.chat({ messages: [user("again")] })).status, 502);
  const { calls, fidelity } = await client.trajectory();
  assert.deepEqual(
    calls.map(({ uncounted, tries }) => [uncounted, tries.map((one) => one.may_have_sampled)]),
    [
      [null, [undefined]],
      ["broken_off", [true]],
    ],
  );
  assert.deepEqual(fidelity.uncounted, { broken_off: 1 });
});

test("a session keeps experts up to its bound, counted by its log, and names why it keeps no more", async () => {
  await using at = await enginesAt((_, __, index) => turns[index] ?? {}, { a: { routing: "told" } });
  const client = await at.open({ purpose: "train", continuity: "auto", relay: "buffered" });
  await client.say([user("go")]);
  const session = at.proxy.sessions.get(client.sessionId);
  const [{ routing } = {}] = finished(await client.entries());
  assert.ok(session && routing);
  assert.equal(session.state.numberBytes, routing.rows * routing.layers * routing.top_k);
  const bytes = Buffer.alloc(4);
  const sampled: SampledRouting = { base_call_id: null, start: 0, rows: 1, layers: 2, top_k: 2, dtype: "uint8", bytes };
  const kept: string[] = [];
  const media = { keep: (sha256: string) => void kept.push(sha256) } as unknown as typeof session.media;
  const keep = (numberBytes: number) => keepNumbers({ media, state: { numberBytes } }, { routed: sampled, supported: null });
  assert.ok(keep(mostNumberBytes - 4).routing);
  assert.deepEqual(keep(mostNumberBytes - 3), { routing_missing: "not_kept" });
  assert.equal(kept.length, 1);
});

test("a row has its experts only if no token before the last one lacks them", () => {
  const part = (start: number, length: number) => ({ start, length, sha256: "a", row: 0, layers: 1, top_k: 1, dtype: "uint8" as const });
  const token_ids = [1, 2, 3, 4];
  assert.ok(isRouted({ token_ids, routing: [part(0, 2), part(2, 1)] }));
  assert.ok(!isRouted({ token_ids, routing: [part(0, 1), part(2, 2)] }));
  assert.ok(!isRouted({ token_ids, routing: [part(0, 2)] }));
});
