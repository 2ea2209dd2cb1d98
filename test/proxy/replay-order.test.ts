/**
 * A main agent and a sub-agent that works beside it, in requests without any mark of the agent. A replay gives their answers in the
 * recorded order, and a fork beside the sub-agent puts both back to where they were.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogEntry } from "../../base/schema/session-log.ts";
import { engineNamed } from "../../engines/registry.ts";
import { cutAfter, HarnessProxy, Replay, type SessionRecording, toRecording, turnsToForkAt } from "../../proxy/index.ts";
import { RecordedOrder } from "../../proxy/replay/recorded-order.ts";
import { placeAnswers } from "../../proxy/replay/recorded-places.ts";
import type { ReplayOptions } from "../../proxy/replay/replay.ts";
import { MemoryStore } from "../../proxy/store/index.ts";
import { TemplatedEngine } from "../fakes/engines/templated-engine.ts";
import { until } from "../fakes/machine/until.ts";
import { Client } from "../fakes/proxies/proxy-at.ts";
import { assistant, LogBuilder, user } from "../fakes/records/log-builder.ts";

type Chat = Record<string, unknown>[];

const told = "the part is done and tested";
const first = { main: [{ role: "user", content: "Split it." }], part: [{ role: "user", content: "Do the part." }] };

/** One agent: it asks, keeps what it is answered, and is then told what `result` says. */
class Agent {
  readonly #client: Client;
  readonly #chat: Chat;

  constructor(client: Client, who: keyof typeof first) {
    this.#client = client;
    this.#chat = [...first[who]];
  }

  async ask(result: string, signal?: AbortSignal): Promise<string> {
    const response = await this.#client.chat({ messages: this.#chat }, signal);
    const body = (await response.json()) as { choices?: { message: { content: string } }[]; error?: { message: string } };
    const message = body.choices?.[0]?.message;
    if (message === undefined) throw new Error(body.error?.message ?? "no answer");
    this.#chat.push(message, { role: "user", content: result });
    return message.content;
  }
}

type At = AsyncDisposable & {
  engine: TemplatedEngine;
  recording: SessionRecording;
  again(options: Partial<ReplayOptions>): Promise<Client>;
  /** The same session in another process, as if the first one had died behind its last answer. */
  resumed(): Promise<Client>;
};

/** The first turn of the main agent starts the part, which is being sampled through its second turn. Its third request tells of it. */
async function recorded(): Promise<At> {
  await using scope = new AsyncDisposableStack();
  const words = (asked: string): string => (asked.includes("Do the part.") && !asked.includes("Split it.") ? told : "I go on.");
  const engine = scope.use(await TemplatedEngine.start(({ prompt }) => ({ text: words(prompt) })));
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  scope.defer(() => adapter.close());
  const store = new MemoryStore();
  const proxy = scope.use(await HarnessProxy.start({ engine: adapter, store, version: "test" }));
  const open = async (): Promise<Client> => {
    const { session, key } = await proxy.openSession({ purpose: "train", continuity: "auto", sandboxed: true });
    return new Client(proxy, session.id, key);
  };
  const client = await open();
  const main = new Agent(client, "main");
  await main.ask("started");
  const [reached, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  Object.defineProperty(engine, "before", {
    configurable: true,
    get: () => {
      Object.defineProperty(engine, "before", { value: Promise.resolve(), configurable: true });
      reached.resolve();
      return held.promise;
    },
  });
  const part = new Agent(client, "part").ask("");
  await reached.promise;
  await main.ask(`${told}: well done`);
  held.resolve();
  await part;
  await main.ask("");
  await client.settled();
  await proxy.sessions.close(proxy.session(client.sessionId), "over");
  const recording = toRecording(client.sessionId, await store.read(client.sessionId));
  const again: At["again"] = async (options) => {
    const other = await open();
    proxy.session(other.sessionId).replay = new Replay({
      ...{ recording, cut: cutAfter(recording, null), after: "stop", words: "go_on" },
      ...options,
    });
    return other;
  };
  const lines = await store.read(client.sessionId);
  const resumed: At["resumed"] = async () => {
    const later = new MemoryStore();
    const alive = lines.slice(0, lines.findLastIndex(({ type }) => type === "answered") + 1);
    await (await later.open(client.sessionId)).append(...(alive as LogEntry[]));
    const other = release.use(await HarnessProxy.start({ engine: adapter, store: later, version: "test" }));
    await other.resumeSession(client.sessionId, { attempt: 2 });
    return new Client(other, client.sessionId, client.key);
  };
  const release = scope.move();
  return { engine, recording, again, resumed, [Symbol.asyncDispose]: () => release.disposeAsync() };
}

test("a sub-agent that asks early is answered once the main agent has asked for the turn whose results tell of its end", async () => {
  await using at = await recorded();
  const client = await at.again({});
  const order: string[] = [];
  const part = new Agent(client, "part").ask("").then(() => order.push("part"));
  const main = new Agent(client, "main");
  await main.ask("started").then(() => order.push("main 1"));
  order.push("main asks for 2");
  await main.ask(`${told}: well done`).then(() => order.push("main 2"));
  await part;
  await main.ask("").then(() => order.push("main 3"));
  assert.deepEqual(order, ["main 1", "main asks for 2", "part", "main 2", "main 3"]);
  const { replay } = await client.trajectory();
  assert.deepEqual([replay?.how, replay?.turns, replay?.classes], ["arrived", 4, { equal: 4 }]);
});

test("a fork beside a sub-agent samples both anew on their recorded prompts, from where they were", async () => {
  await using at = await recorded();
  assert.deepEqual(turnsToForkAt(at.recording), [0, 1, 3]);
  const cut = cutAfter(at.recording, 1);
  const prompt = (number: number): number[] => {
    const { call } = at.recording.calls[number - 1] ?? assert.fail();
    return [...(call.tokens ?? [])].slice(0, call.promptLength);
  };
  const client = await at.again({ cut, after: "sample" });
  const before = at.engine.exchanges.length;
  const part = new Agent(client, "part").ask("");
  const main = new Agent(client, "main");
  await main.ask("started");
  await client.logged("compared");
  assert.equal(at.engine.exchanges.length, before, "nothing is sampled before the main agent has come to its place");
  await main.ask("new");
  await part;
  const sampled = at.engine.exchanges.slice(before).map((one) => one.prompt_token_ids);
  assert.deepEqual(new Set(sampled.map(String)), new Set([prompt(2), prompt(3)].map(String)));
  const { replay, nodes, calls } = await client.trajectory();
  assert.deepEqual([replay?.how, replay?.turns], ["arrived", 1]);
  const trained = new Set(nodes.filter(({ trainable }) => trainable).map(({ call_id }) => call_id));
  assert.deepEqual(trained, new Set(calls.filter(({ replayed_from }) => replayed_from == null).map(({ call_id }) => call_id)));
});

test("a replay to a turn beside a sub-agent arrives with the main agent, and asks no engine for the sub-agent", async () => {
  await using at = await recorded();
  const client = await at.again({ cut: cutAfter(at.recording, 1) });
  const before = at.engine.exchanges.length;
  const part = assert.rejects(new Agent(client, "part").ask(""), /the replay is over/);
  const main = new Agent(client, "main");
  await main.ask("started");
  await assert.rejects(main.ask(""), /the replay is over/);
  await part;
  assert.equal(at.engine.exchanges.length, before);
  const { replay } = await client.trajectory();
  assert.deepEqual([replay?.how, replay?.turns], ["arrived", 1]);
});

test("a conversation that the record does not have diverges, though another one begins behind the cut", async () => {
  await using at = await recorded();
  const client = await at.again({ cut: cutAfter(at.recording, 0), after: "sample" });
  const other = await client.chat({
    messages: [
      { role: "user", content: "Give me another place." },
      { role: "user", content: "Now." },
    ],
  });
  assert.equal(other.status, 400);
  assert.match(await other.text(), /the replay left its record/);
});

test("an answer waits no longer than the replay's patience for what does not come", async () => {
  await using at = await recorded();
  const client = await at.again({ leastWaitMs: 50 });
  assert.equal(await new Agent(client, "part").ask(""), told);
  const main = new Agent(client, "main");
  await main.ask("started");
  await main.ask(`${told}: well done`);
  await main.ask("");
  const { replay } = await client.trajectory();
  assert.equal(replay?.how, "arrived");
  assert.match(replay.out_of_order ?? "", /^turn 1 of main was not asked for and nothing else came for 0 s: from there on, answers were/);
});

test("a client that left before its answer was due is given the same place when it asks again", async () => {
  await using at = await recorded();
  const client = await at.again({ cut: cutAfter(at.recording, 1), after: "sample" });
  const gone = new AbortController();
  const left = assert.rejects(new Agent(client, "part").ask("", gone.signal));
  await client.logged("compared");
  gone.abort();
  await left;
  await client.logged("refused");
  const part = new Agent(client, "part").ask("");
  const main = new Agent(client, "main");
  await main.ask("started");
  await main.ask("new");
  assert.equal(await part, told);
  assert.equal((await client.trajectory()).replay?.how, "arrived");
});

test("a resumed session gives a client that left while its answer waited the recorded answer when it asks again", async () => {
  await using at = await recorded();
  const client = await at.resumed();
  const before = at.engine.exchanges.length;
  const gone = new AbortController();
  const left = assert.rejects(new Agent(client, "part").ask("", gone.signal));
  const { replay } = client.proxy.session(client.sessionId);
  await until(() => replay?.isPlaying === true);
  gone.abort();
  await left;
  await client.logged("refused");
  const main = new Agent(client, "main");
  await main.ask("started");
  await main.ask(`${told}: well done`);
  assert.equal(await new Agent(client, "part").ask(""), told);
  await main.ask("");
  assert.equal(at.engine.exchanges.length, before, "no engine is asked");
  assert.equal((await client.trajectory()).replay?.how, "arrived");
});

/** A main agent whose tool ran so long, and two sub-agents that asked meanwhile; the second one a second time after so long. */
function orderOf(mainMs: number, partMs = 0): { order: RecordedOrder; ids: string[] } {
  const log = new LogBuilder();
  const begun = [user("Split it.")];
  const main = log.call({ messages: begun, begin: 0, finish: 1_000 });
  const one = log.call({ messages: [user("Do one part.")], begin: 1_000, finish: 1_000 });
  const other = log.call({ messages: [user("Do the other part.")], begin: 1_000, finish: 1_000 });
  const last = log.call({
    messages: [user("Do the other part."), user("go on")],
    parent: other,
    begin: 1_000 + partMs,
    finish: 1_000 + partMs,
  });
  const next = log.call({ messages: [...begun, user("done")], parent: main, begin: 1_000 + mainMs, finish: 2_000 + mainMs });
  const recording = toRecording("sestest", log.entries);
  return { order: new RecordedOrder(recording, cutAfter(recording, null)), ids: [main, one, other, last, next] };
}

test("an answer waits twice as long as the slowest recorded turn that can come, at least 30 s and at most 15 min", () => {
  const waits = (toolMs: number): [number, number | null] => {
    const { order, ids } = orderOf(toolMs);
    for (const id of ids.slice(0, 4)) order.asked(id);
    order.given(ids[0] ?? "");
    const { ms, turn } = order.patienceFor(ids[1] ?? null);
    return [ms, turn?.number ?? null];
  };
  assert.deepEqual([0, 10_000, 60_000, 3_600_000].map(waits), [
    [30_000, 5],
    [30_000, 5],
    [120_000, 5],
    [900_000, 5],
  ]);
});

test("an answer does not wait the slowest turn's time for agents that are quick, wait themselves, or are through", () => {
  const { order, ids } = orderOf(3_600_000, 60_000);
  const [main = "", one = "", other = "", last = "", next = ""] = ids;
  order.asked(main);
  assert.deepEqual(order.patienceFor(one).ms, 30_000, "the main agent waits for its first answer, and the other part begins at once");
  order.given(main);
  for (const id of [one, other]) order.asked(id);
  order.given(other);
  order.asked(next);
  assert.deepEqual([order.patienceFor(one).ms, order.patienceFor(one).turn?.number], [120_000, 4], "of the other part alone");
  order.asked(last);
  assert.deepEqual(order.patienceFor(one), { ms: 30_000, turn: null }, "all have asked");
});

test("an answer that waits when the harness ends is waited for no longer, and what is left running gets none", {
  timeout: 60_000,
}, async () => {
  await using at = await recorded();
  const client = await at.again({});
  const part = assert.rejects(new Agent(client, "part").ask(""), /the harness has ended/);
  const { replay } = client.proxy.session(client.sessionId);
  await until(() => replay?.isPlaying === true);
  client.proxy.session(client.sessionId).stopCalls("the harness has ended");
  await part;
  await assert.rejects(new Agent(client, "main").ask("started"), /the harness has ended/);
});

/** A sub-agent that ends with these words, and requests behind its end: of the main agent, or of a conversation that begins later. */
function endTold(words: string, tells: string, by: "main" | "new" = "main"): boolean {
  const log = new LogBuilder();
  const chat = [user("Split it.")];
  const first = log.call({ messages: chat, says: assistant("I split it.") });
  const part = log.call({ messages: [user("Do the part.")], says: assistant(words) });
  const second = [...chat, assistant("I split it."), user("started")];
  const root = by === "main" ? first : log.call({ messages: [user("Begin.")], says: assistant("I begin.") });
  const before = log.call({ messages: second, says: assistant("I go on."), parent: root });
  log.call({ messages: [...second, assistant("I go on."), user(tells)], parent: before });
  const recording = toRecording("sestest", log.entries);
  const places = placeAnswers(recording, cutAfter(recording, null).answered);
  const own = recording.calls.find(({ call }) => call.id === part) ?? assert.fail();
  return places.find(({ id }) => id === part)?.at !== own.endedAt;
}

test("an end is told of by its last words only where they are long enough, in a conversation older than the end", () => {
  assert.ok(endTold(told, `it says: ${told}`));
  assert.ok(!endTold("}", "function main() {}"), "too short");
  assert.ok(!endTold(told, `it says: ${told}`, "new"), "begun later");
});

test("the ends of many sub-agents are looked for in bounded time, and the rest keep the recorded order", () => {
  const log = new LogBuilder();
  const first = log.call({ messages: [user("Split it.")], says: assistant("I split it.") });
  for (let part = 0; part < 300; part++) log.call({ messages: [user(`Do part ${part}.`)], says: assistant(told) });
  const chat = [user("Split it."), assistant("I split it."), user("started")];
  const before = log.call({ messages: chat, says: assistant("I go on."), parent: first });
  // Each end that is looked for there stands behind the request before it.
  const long = user("x".repeat(900_000));
  log.call({ messages: [...chat, assistant("I go on."), long, user(told.repeat(400))], parent: before });
  const recording = toRecording("sestest", log.entries);
  const places = placeAnswers(recording, cutAfter(recording, null).answered);
  const moved = places.filter(({ id, at }) => recording.calls.some(({ call, endedAt }) => call.id === id && endedAt !== at));
  assert.ok(moved.length > 15 && moved.length < 30, `${moved.length}`);
});
