/** A session whose process died goes on in another one: its own answers are given again, and only what was not finished is sampled. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { LogEntry, LogLine } from "../../base/schema/session-log.ts";
import type { Budgets } from "../../base/schema/session-spec.ts";
import { engineNamed } from "../../engines/registry.ts";
import { HarnessProxy } from "../../proxy/index.ts";
import { MemoryStore } from "../../proxy/store/index.ts";
import { reconstruct, selectRows } from "../../reconstruct/index.ts";
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
const script = [call("ls"), call("edit"), call("npm test"), { text: "Done." }];

/** Asks, runs what it is told to and ends; `printed` is what the commands print, by turn. */
async function drive(client: Client, printed: (turn: number) => string): Promise<Said[]> {
  const chat: Chat = [...hi];
  const answers: Said[] = [];
  for (let turn = 0; turn < 9; turn++) {
    const said = (await client.say(chat, { tools })) as Said;
    answers.push(said);
    if (!said.tool_calls?.length) break;
    chat.push(said, ...said.tool_calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: printed(turn) })));
  }
  await client.settled();
  return answers;
}

/** Says the script's turns, by how many turns the prompt holds. */
async function engineFor(t: TestContext): Promise<TemplatedEngine> {
  const engine = await TemplatedEngine.start(({ body }) => {
    const turns = (body.messages as { role: string }[]).filter(({ role }) => role === "assistant").length;
    return script[turns] ?? { text: "Done." };
  });
  t.after(() => engine[Symbol.asyncDispose]());
  return engine;
}

async function proxyOver(t: TestContext, engine: TemplatedEngine, store: MemoryStore): Promise<HarnessProxy> {
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  const proxy = await HarnessProxy.start({ engine: adapter, store, version: "test" });
  t.after(() => proxy[Symbol.asyncDispose]().then(() => adapter.close()));
  return proxy;
}

type Dead = { engine: TemplatedEngine; id: string; key: string; answers: Said[]; lines: LogLine[] };

/** A whole session of four turns, as its log tells it. */
async function recorded(t: TestContext, budgets: Budgets = {}): Promise<Dead> {
  const engine = await engineFor(t);
  const store = new MemoryStore();
  const proxy = await proxyOver(t, engine, store);
  const spec = { purpose: "train", continuity: "auto", sandboxed: true, rollout_id: "r", attempt: 1, budgets } as const;
  const { session, key } = await proxy.openSession(spec, "caller");
  const client = new Client(proxy, session.id, key);
  const answers = await drive(client, (turn) => `turn ${turn} took 12 ms`);
  await proxy.sessions.close(session, "exited");
  return { engine, id: session.id, key, answers, lines: await store.read(session.id) };
}

/** Another process over what the log held when the first one died. */
async function goesOn(t: TestContext, { engine, id, key }: Dead, lines: readonly LogLine[], attempt = 2): Promise<Client> {
  const store = new MemoryStore();
  await (await store.open(id)).append(...(lines as LogEntry[]));
  const proxy = await proxyOver(t, engine, store);
  await proxy.resumeSession(id, { attempt });
  return new Client(proxy, id, key);
}

/** The log until so many turns were finished, and `more` lines behind that. */
function until(lines: readonly LogLine[], turns: number, more = 1): LogLine[] {
  const ends = lines.flatMap((line, index) => (line.type === "call_finished" ? [index] : []));
  return lines.slice(0, (ends[turns - 1] ?? 0) + 1 + more);
}

const later = (turn: number): string => `turn ${turn} took 987 ms`;

for (const turns of [1, 2, 3, 4])
  test(`a session that died behind turn ${turns} goes on from there, and each of its turns is sampled and trained once`, async (t) => {
    const dead = await recorded(t);
    const asked = dead.engine.exchanges.length;
    const client = await goesOn(t, dead, until(dead.lines, turns));
    const answers = await drive(client, later);
    assert.deepEqual(answers.slice(0, turns), dead.answers.slice(0, turns), "with the same ids");
    assert.equal(dead.engine.exchanges.length - asked, 4 - turns);
    const trajectory = await client.trajectory();
    assert.deepEqual([trajectory.replay?.how, trajectory.replay?.turns, trajectory.attempt], ["arrived", turns, 2]);
    assert.deepEqual(
      trajectory.calls.map(({ outcome, match, replayed_from }) => [outcome, match === "root" || match === "exact", replayed_from]),
      Array(4).fill(["delivered", true, null]),
    );
    const whole = reconstruct(dead.lines);
    assert.equal(trajectory.fidelity.sampled_tokens, trajectory.fidelity.trainable_tokens);
    assert.equal(selectRows(trajectory).tokens.trained, selectRows(whole).tokens.trained, "as many as without a death");
    const [spared] = trajectory.resumed;
    assert.deepEqual([spared?.attempt, spared?.calls], [2, turns]);
  });

test("what was being sampled when the process died is asked again on the recorded messages, whatever the tools print now", async (t) => {
  const dead = await recorded(t);
  const third = dead.lines.filter(({ type }) => type === "call_begun")[2];
  const client = await goesOn(t, dead, dead.lines.slice(0, dead.lines.indexOf(third as LogLine) + 1));
  await drive(client, later);
  const { calls, fidelity } = await client.trajectory();
  assert.deepEqual(
    calls.map(({ outcome }) => outcome),
    ["delivered", "delivered", "failed", "delivered", "delivered"],
  );
  assert.deepEqual(fidelity.uncounted, { lost_in_flight: 1 });
  const asked = JSON.stringify(dead.engine.exchanges.at(-2)?.request.messages);
  assert.match(asked, /turn 1 took 12 ms/);
  assert.doesNotMatch(asked, /987/);
});

test("a session that died while its work was graded is given all of its answers, and asks no engine", async (t) => {
  const dead = await recorded(t);
  assert.equal(dead.lines.at(-1)?.type, "sealed");
  const asked = dead.engine.exchanges.length;
  const client = await goesOn(t, dead, dead.lines);
  assert.deepEqual(await drive(client, later), dead.answers);
  assert.equal(dead.engine.exchanges.length, asked);
  assert.equal((await client.trajectory()).stop_reason, null, "the seal before it holds no more");
});

test("a session that dies again goes on from what both processes finished", async (t) => {
  const dead = await recorded(t);
  const second = await goesOn(t, dead, until(dead.lines, 2));
  await drive(second, later);
  // Its third turn is the last one that is known.
  const lines = until(await second.entries(), 3);
  const asked = dead.engine.exchanges.length;
  const third = await goesOn(t, dead, lines, 3);
  await drive(third, (turn) => `turn ${turn} took 5 s`);
  assert.equal(dead.engine.exchanges.length - asked, 1);
  const { resumed, attempt, fidelity } = await third.trajectory();
  assert.deepEqual([resumed.map(({ calls }) => calls), attempt], [[2, 3], 3]);
  assert.equal(fidelity.sampled_tokens, fidelity.trainable_tokens);
});

test("one that died in the middle of its replay has lost nothing of what was finished", async (t) => {
  const dead = await recorded(t);
  const second = await goesOn(t, dead, until(dead.lines, 3));
  await second.say(hi, { tools });
  await second.settled();
  const asked = dead.engine.exchanges.length;
  const third = await goesOn(t, dead, await second.entries(), 3);
  await drive(third, later);
  assert.equal(dead.engine.exchanges.length - asked, 1);
});

test("a harness that does otherwise than it did is answered no more, and nothing new is sampled in its session", async (t) => {
  const dead = await recorded(t);
  const asked = dead.engine.exchanges.length;
  const client = await goesOn(t, dead, until(dead.lines, 3));
  const said = (await client.say(hi, { tools })) as Said;
  const [one] = said.tool_calls ?? [];
  const results = ["a", "b"].map((content) => ({ role: "tool", tool_call_id: one?.id, content }));
  const response = await client.chat({ messages: [...hi, said, ...results], tools });
  assert.deepEqual([response.status, dead.engine.exchanges.length], [400, asked]);
  assert.match(await response.text(), /replay left its record: turn 2: 3 messages were recorded and 4 came/);
  assert.equal((await client.trajectory()).replay?.how, "diverged");
});

test("budgets hold over the death: its turns are counted once, and the clock goes on from where it stood", async (t) => {
  const dead = await recorded(t, { max_turns: 4, max_wall_seconds: 600 });
  const lines = until(dead.lines, 3);
  const client = await goesOn(t, dead, lines);
  await drive(client, later);
  const session = client.proxy.session(dead.id);
  assert.equal(session.spent.turns, 4);
  const begun = lines.find(({ type }) => type === "call_begun");
  const ended = lines.findLast(({ type }) => type === "call_finished");
  const { replayEnded } = session.state;
  assert.ok(begun?.type === "call_begun" && ended?.type === "call_finished" && replayEnded);
  assert.equal(replayEnded.recorded_ms, ended.time - begun.time);
});

test("a session that another attempt has brought back stays in memory when the attempt before it ends", async (t) => {
  const proxy = await proxyOver(t, await engineFor(t), new MemoryStore());
  const { session, key } = await proxy.openSession({ any_model: true });
  const next = await proxy.sessions.resume(session.id, { attempt: 2 });
  await proxy.sessions.close(session, "the rollout is over");
  assert.equal(proxy.sessions.get(session.id), next.session);
  assert.equal(proxy.sessions.byKey(key), next.session);
  await proxy.sessions.close(next.session, "the rollout is over");
  assert.equal(proxy.sessions.get(session.id), undefined);
});

test("a parked session is of the rollout that takes it up: in memory, in its log, and for each process after that", async (t) => {
  const { engine, id, lines } = await recorded(t);
  const store = new MemoryStore();
  await (await store.open(id)).append(...(until(lines, 2) as LogEntry[]));
  const place = { rollout_id: "later", group_id: "g2", sample_index: 3 };
  const told = async () => {
    const { rollout_id, attempt, group, trajectory_id } = reconstruct(await store.read(id));
    return { rollout_id, attempt, place: [group.id, group.sample_index], trajectory_id };
  };
  const parked = await told();
  assert.deepEqual([parked.rollout_id, parked.attempt], ["r", 1]);

  const first = await proxyOver(t, engine, store);
  const { session } = await first.resumeSession(id, { attempt: 1, place });
  assert.deepEqual([session.spec.rollout_id, session.spec.group_id, session.spec.sample_index], ["later", "g2", 3]);
  await first.sessions.close(session, "stopped");
  const taken = await told();
  assert.deepEqual([taken.rollout_id, taken.attempt, taken.place], ["later", 1, ["g2", 3]]);
  assert.notEqual(taken.trajectory_id, parked.trajectory_id, "both have an attempt 1");

  const second = await proxyOver(t, engine, store);
  const again = await second.resumeSession(id, { attempt: 2, place });
  assert.equal(again.session.spec.rollout_id, "later");
  const places = (await store.read(id)).flatMap((line) => (line.type === "resumed" ? [line.place] : []));
  assert.deepEqual(places, [place, undefined]);
});
