/** A harness that is driven again through recorded turns: what answers it, what the engine reads behind that, and what ends it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import type { EngineFacts } from "../../engines/index.ts";
import { engineNamed } from "../../engines/registry.ts";
import { cutAfter, editedAnswer, HarnessProxy, Replay, type SessionRecording, toRecording } from "../../proxy/index.ts";
import { recordedPrompt } from "../../proxy/replay/recorded-prompt.ts";
import type { ReplayOptions } from "../../proxy/replay/replay.ts";
import { Call } from "../../proxy/session/call.ts";
import { MemoryStore } from "../../proxy/store/index.ts";
import { type Sampling, TemplatedEngine } from "../fakes/engines/templated-engine.ts";
import { Client } from "../fakes/proxies/proxy-at.ts";

type Said = { role: string; content: string | null; tool_calls?: { id: string; function: { arguments: string } }[] };
type Chat = Record<string, unknown>[];

const tools = [
  { type: "function", function: { name: "bash", parameters: { type: "object", properties: { command: { type: "string" } } } } },
];
const hi: Chat = [{ role: "user", content: "Repair it." }];
const call = (command: string): Sampling => ({
  text: `\n<tool_call>\n{"name": "bash", "arguments": {"command":  "${command}"}}\n</tool_call>`,
});

/** Asks, runs what it is told to and ends; `printed` is what the commands print, by turn. */
async function drive(client: Client, printed: (turn: number, command: string) => string, first: Chat = hi): Promise<Said[]> {
  const chat: Chat = [...first];
  const answers: Said[] = [];
  for (let turn = 0; turn < 9; turn++) {
    const said = (await client.say(chat, { tools })) as Said;
    answers.push(said);
    if (!said.tool_calls?.length) return answers;
    const results = said.tool_calls.map(({ id, function: { arguments: given } }) => ({
      role: "tool",
      tool_call_id: id,
      content: printed(turn, given),
    }));
    chat.push(said, ...results);
  }
  return answers;
}

type At = AsyncDisposable & {
  engine: TemplatedEngine;
  proxy: HarnessProxy;
  recording: SessionRecording;
  answers: Said[];
  again(options: Partial<ReplayOptions>, spec?: Partial<SessionSpec>): Promise<Client>;
};

/** A session of four turns, recorded: three commands that print their turn and a duration, and last words. */
async function recorded(spec: Partial<SessionSpec> = {}): Promise<At> {
  await using scope = new AsyncDisposableStack();
  const script = [call("ls"), call("edit"), call("npm test"), { text: "Done." }];
  const engine = scope.use(await TemplatedEngine.start(({ index }) => script[index] ?? { text: `Fresh ${index}.` }));
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  scope.defer(() => adapter.close());
  const store = new MemoryStore();
  const proxy = scope.use(await HarnessProxy.start({ engine: adapter, store, version: "test" }));
  const open = async (given: Partial<SessionSpec>) => {
    const { session, key } = await proxy.openSession({ purpose: "train", continuity: "auto", sandboxed: true, ...given });
    return new Client(proxy, session.id, key);
  };
  const client = await open(spec);
  const answers = await drive(client, (turn) => `turn ${turn} took 12 ms`);
  await client.settled();
  await proxy.sessions.close(proxy.session(client.sessionId), "over");
  const recording = toRecording(client.sessionId, await store.read(client.sessionId));
  const again: At["again"] = async (options, more = {}) => {
    const other = await open({ ...spec, ...more });
    proxy.session(other.sessionId).replay = new Replay({
      ...{ recording, cut: cutAfter(recording, null), after: "stop", words: "go_on" },
      ...options,
    });
    return other;
  };
  const release = scope.move();
  return { engine, proxy, recording, answers, again, [Symbol.asyncDispose]: () => release.disposeAsync() };
}

test("a replay to the end gives the recorded answers with the same ids, and asks no engine", async () => {
  await using at = await recorded();
  const asked = at.engine.exchanges.length;
  const client = await at.again({});
  const answers = await drive(client, (turn) => `turn ${turn} took 987 ms`);
  assert.deepEqual(answers, at.answers);
  assert.equal(at.engine.exchanges.length, asked);
  const { replay, calls, nodes, fidelity } = await client.trajectory();
  assert.deepEqual(replay, {
    how: "arrived",
    turns: 4,
    classes: { equal: 1, values: 3 },
    difference: 'message 3 (tool) had "turn 0 took 12 ms" and has "turn 0 took 987 ms"',
  });
  assert.deepEqual(
    calls.map(({ call_id, replayed_from, outcome }) => [call_id === replayed_from, outcome]),
    Array(4).fill([true, "delivered"]),
  );
  assert.deepEqual(new Set(nodes.filter(({ kind }) => kind === "sampled").map(({ reason }) => reason)), new Set(["replayed"]));
  assert.equal(fidelity.trainable_tokens, 0);
});

test("a fork's first new turn is sampled on the recorded prompt, token for token, whatever its tools print now", async () => {
  await using at = await recorded();
  for (const turn of [0, 1, 2, 3]) {
    const cut = cutAfter(at.recording, turn);
    const client = await at.again({ cut, after: "sample" });
    const before = at.engine.exchanges.length;
    await drive(client, (now) => `turn ${now} took ${now}44 s`);
    const fresh = at.engine.exchanges.slice(before);
    const { call: next } = cut.next ?? assert.fail();
    // What the engine itself says that it conditioned on.
    assert.deepEqual(fresh[0]?.prompt_token_ids, [...(next.tokens ?? [])].slice(0, next.promptLength), `turn ${turn}`);
    const { calls, nodes, replay } = await client.trajectory();
    const own = calls.slice(turn);
    assert.deepEqual([replay?.how, replay?.turns, own[0]?.continuity?.mode], ["arrived", turn, "recorded"]);
    const trained = new Set(nodes.filter(({ trainable }) => trainable).map(({ call_id }) => call_id));
    assert.deepEqual(trained, new Set(own.map(({ call_id }) => call_id)), "only what is sampled here is trained here");
  }
});

test("behind the fork the new turns go on from the recorded tokens too", async () => {
  await using at = await recorded();
  const client = await at.again({ cut: cutAfter(at.recording, 2), after: "sample" });
  // The engine's script is over: it says plain words, and the harness goes on by hand.
  const chat: Chat = [...hi];
  for (let turn = 0; turn < 3; turn++) {
    const said = (await client.say(chat, { tools })) as Said;
    chat.push(said, ...(said.tool_calls ?? []).map(({ id }) => ({ role: "tool", tool_call_id: id, content: `turn ${turn} took 5 s` })));
  }
  await client.say([...chat, { role: "user", content: "Go on." }], { tools });
  const last = at.engine.exchanges.slice(-2);
  const before = [...(last[0]?.prompt_token_ids ?? []), ...(last[0]?.token_ids ?? [])];
  assert.deepEqual(last[1]?.prompt_token_ids.slice(0, before.length), before);
});

test("empty turns and equal turns are found at their places, even after changed tool results", async () => {
  await using scope = new AsyncDisposableStack();
  const said = ["Yes.", "", "Yes.", "", "Done."];
  const engine = scope.use(await TemplatedEngine.start(({ index }) => ({ text: said[index] ?? "Fresh." })));
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  scope.defer(() => adapter.close());
  const store = new MemoryStore();
  const proxy = scope.use(await HarnessProxy.start({ engine: adapter, store, version: "test" }));
  const play = async (results: string, replay: Replay | null): Promise<Client> => {
    const { session, key } = await proxy.openSession({ purpose: "train", continuity: "auto", sandboxed: true });
    session.replay = replay;
    const client = new Client(proxy, session.id, key);
    const chat: Chat = [...hi];
    for (const turn of said.keys()) chat.push(await client.say(chat), { role: "user", content: `${turn} took ${results}` });
    await client.settled();
    return client;
  };
  const first = await play("12 ms", null);
  const recording = toRecording(first.sessionId, await store.read(first.sessionId));
  for (const turn of [1, 2, 3, 4]) {
    const fork = await play("98 ms", new Replay({ recording, cut: cutAfter(recording, turn), after: "sample", words: "go_on" }));
    const { replay, calls } = await fork.trajectory();
    assert.deepEqual([replay?.how, replay?.turns, calls.length], ["arrived", turn, said.length], replay?.difference ?? "");
    const ids = calls.map(({ call_id }) => call_id);
    assert.deepEqual(
      calls.map(({ parent_call_id }) => parent_call_id),
      [null, ...ids.slice(0, -1)],
      "each goes on from the one before",
    );
  }
});

test("another tool call, or a request that the record does not have, ends the replay and is answered no more", async () => {
  await using at = await recorded();
  const client = await at.again({});
  const said = (await client.say(hi, { tools })) as Said;
  const [one] = said.tool_calls ?? [];
  const results = ["a", "b"].map((content) => ({ role: "tool", tool_call_id: one?.id, content }));
  const response = await client.chat({ messages: [...hi, said, ...results], tools });
  assert.equal(response.status, 400);
  assert.match(await response.text(), /replay left its record: turn 2: 3 messages were recorded and 4 came/);
  assert.equal((await client.chat({ messages: hi, tools })).status, 400);
  const { replay } = await client.trajectory();
  assert.deepEqual([replay?.how, replay?.classes], ["diverged", { equal: 1, structure: 1 }]);
});

test("other words go on with the recorded ones, or end the replay where that is asked for", async () => {
  for (const [words, how] of [
    ["go_on", "arrived"],
    ["end", "diverged"],
  ] as const) {
    await using at = await recorded();
    const client = await at.again({ words });
    await drive(client, () => "something else").catch(() => undefined);
    const { replay } = await client.trajectory();
    assert.deepEqual([replay?.how, (replay?.classes.words ?? 0) > 0], [how, true]);
  }
});

test("a fork of a fork within its replayed part goes on at the clock of the record that was sampled", async () => {
  await using at = await recorded();
  const slow = slowed(at.recording);
  const clockBehind = (recording: SessionRecording, turn: number) =>
    new Replay({ recording, cut: cutAfter(recording, turn), after: "sample", words: "go_on" }).end("arrived", null)?.recorded_ms;
  const fork = await at.again({ recording: slow, cut: cutAfter(slow, 3), after: "sample" });
  await drive(fork, () => "turn 0 took 3 ms");
  await fork.settled();
  const again = toRecording(fork.sessionId, await fork.entries());
  for (const turn of [1, 2]) {
    const expected = clockBehind(slow, turn);
    assert.ok((expected ?? 0) >= turn * 60_000);
    assert.equal(clockBehind(again, turn), expected, `turn ${turn}`);
  }
});

/** Each call begins a minute after the one before it. */
function slowed(recording: SessionRecording): SessionRecording {
  for (const [index, { call }] of recording.calls.entries()) {
    call.begun.time += index * 60_000;
    if (call.outcome) call.outcome.time += index * 60_000;
  }
  return recording;
}

test("a request with other settings finds its place, gets the recorded answer and says which setting it is", async () => {
  await using at = await recorded();
  const client = await at.again({});
  const said = (await client.say(hi, { tools, tool_choice: "required", temperature: 0.25 })) as Said;
  assert.deepEqual(said, at.answers[0]);
  const { replay } = await client.trajectory();
  assert.deepEqual(replay?.classes, { words: 1 });
  assert.match(replay?.difference ?? "", /^the setting (tool_choice|temperature) had "nothing" and has/);
});

test("a harness that asks for more than the record holds gets no sample of a replay", async () => {
  await using at = await recorded();
  const asked = at.engine.exchanges.length;
  const client = await at.again({ cut: cutAfter(at.recording, 2) });
  await assert.rejects(
    drive(client, () => "turn 0 took 3 ms"),
    /the replay is over/,
  );
  assert.equal(at.engine.exchanges.length, asked);
  await at.proxy.session(client.sessionId).replay?.stopped;
});

test("replayed tokens are charged to no budget, and the clock has gone on by what was recorded", async () => {
  await using at = await recorded();
  const client = await at.again({ cut: cutAfter(at.recording, 3), after: "sample" }, { budgets: { max_turns: 5, max_sampled_tokens: 30 } });
  await drive(client, () => "turn 0 took 3 ms");
  const session = at.proxy.session(client.sessionId);
  await client.settled();
  const own = at.engine.exchanges.at(-1)?.token_ids.length;
  assert.deepEqual([session.spent.turns, session.spent.sampledTokens], [4, own]);
  const { replayEnded } = session.state;
  const [first] = at.recording.calls;
  const next = at.recording.calls[3];
  assert.equal(replayEnded?.recorded_ms, (next?.call.begun.time ?? 0) - (first?.call.begun.time ?? 0));
});

test("an answer given by hand is context, and a call of a tool that there is not is refused", async () => {
  await using at = await recorded();
  const cut = cutAfter(at.recording, 2);
  const { last } = cut;
  assert.ok(last);
  const edited = editedAnswer(at.recording, last, '{"text": "Look.", "tool_calls": [{"name": "bash", "arguments": {"command": "cat a"}}]}');
  const client = await at.again({ cut: { ...cut, next: null }, edited, after: "sample" });
  const answers = await drive(client, (turn) => `turn ${turn} took 3 ms`);
  assert.equal(answers[1]?.content, "Look.");
  assert.equal(answers[1]?.tool_calls?.[0]?.function.arguments, '{"command":"cat a"}');
  const { calls, nodes } = await client.trajectory();
  assert.deepEqual([calls[1]?.sampled_length, calls[1]?.missing], [null, "edited: the answer was given by hand"]);
  assert.deepEqual(
    nodes.filter(({ trainable }) => trainable).map(({ call_id }) => call_id),
    [calls[2]?.call_id],
  );
  assert.throws(
    () => editedAnswer(at.recording, last, '{"tool_calls": [{"name": "fly", "arguments": {}}]}'),
    /the harness has no tool "fly": it has bash/,
  );
});

test("a freeform tool is called by hand with its raw text", async () => {
  await using at = await recorded();
  const { last } = cutAfter(at.recording, 2);
  assert.ok(last);
  const tools = new Map([[last.call.begun.tools_hash ?? "", [{ name: "apply_patch", parameters: null, kind: "custom" as const }]]]);
  const edit = (given: unknown) =>
    editedAnswer({ ...at.recording, tools }, last, JSON.stringify({ tool_calls: [{ name: "apply_patch", arguments: given }] }));
  assert.deepEqual(edit({ input: "*** Begin Patch" }).finished?.message?.parts, [
    { type: "tool_call", id: "edited0", name: "apply_patch", arguments: "*** Begin Patch", kind: "custom" },
  ]);
  assert.throws(() => edit({ patch: "x" }), /the tool "apply_patch" takes text: give it as \{"input": "…"\} in its arguments/);
});

test("a call beside the fork whose prompt no engine told is sampled on a rendered one, and another template is refused", async () => {
  await using at = await recorded();
  const replay = new Replay({ recording: at.recording, cut: cutAfter(at.recording, 1), after: "sample", words: "go_on" });
  const [first] = at.recording.calls;
  assert.ok(first);
  const broken = { ...first, call: new Call(first.call.begun, first.call.messages), finished: null };
  const facts = { token_in: true, fingerprints: null } as unknown as EngineFacts;
  assert.equal(recordedPrompt(replay, broken, facts), null);
  assert.throws(() => recordedPrompt(replay, first, facts), /another template or tokenizer/);
});

test("a turn that there is not, and a log that is gone, are said in one sentence", async () => {
  await using at = await recorded();
  assert.throws(() => cutAfter(at.recording, 9), /there is no turn 9: its turns are 1, 2, 3, 4/);
  assert.throws(() => toRecording("sesgone", []), /the log of session sesgone is not there any more/);
});
