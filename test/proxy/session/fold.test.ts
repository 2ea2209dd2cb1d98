/**
 * A session that is brought back from its log knows what it knew: whatever calls, retries, failures, cuts, budgets, full
 * disks, conversations, deletions, rewards and seals it has seen (fakes/records/state-of.ts says what is compared).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { LogEntry } from "../../../base/schema/session-log.ts";
import type { Budgets, SessionSpec } from "../../../base/schema/session-spec.ts";
import { rebuildSession } from "../../../proxy/index.ts";
import type { Session } from "../../../proxy/session/session.ts";
import { DiskStore } from "../../../proxy/store/index.ts";
import { Draw } from "../../contracts/hostile-requests/draw.ts";
import type { ScriptedReply } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { until } from "../../fakes/machine/until.ts";
import { type EnginesAt, enginesAt } from "../../fakes/proxies/engines-at.ts";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";
import { FaultyStore } from "../../fakes/records/faulty-store.ts";
import { stateOf } from "../../fakes/records/state-of.ts";

const sessions = Number(process.env.ALIDADE_TEST_FUZZ_SESSIONS ?? 12);
const seed = Number(process.env.ALIDADE_TEST_FUZZ_SEED ?? 1);
const actionsEach = 14;

const scratch = scratchFolder("fold");
const hi = [{ role: "user", content: "hi" }];
const titler = [{ role: "system", content: "You are a title generator." }];

test("state after a rebuild is the live state, in generated sessions", { timeout: 300_000 }, async () => {
  const store = new FaultyStore();
  const replies = new Draw(seed, 0);
  const disk = new Draw(seed, 0, 1);
  // Entries overtake each other on their way to the log.
  store.slow = () => (disk.chance(0.2) ? sleep(disk.below(4)) : undefined);
  const policy = (version: string) => ({ policy: { version, step: null } });
  await using at = await enginesAt(
    (_, request) => (request.probe ? { text: "x" } : reply(replies, JSON.stringify(request.messages))),
    { a: policy("v1"), b: policy("v1"), judge: { ...policy("j"), purpose: "eval", models: ["judge"] } },
    { store },
  );
  for (let number = 1; number <= sessions; number++) {
    const draw = new Draw(seed, number);
    const client = await at.open(specOf(draw));
    const played = new Played(at, client, store, draw);
    const session = at.proxy.session(client.sessionId);
    for (let action = 0; action < actionsEach; action++) {
      const name = await played.act();
      await settled(session);
      store.full = () => false;
      // What a full disk kept out goes ahead of it.
      await session.reward(draw.of([0, 1, null]), {});
      await assertFolded(store, session, `seed ${seed}, session ${number}, action ${action}: ${name}`);
      if (session.sealed !== null) break;
    }
  }
});

test("a session that a budget ended is so after a restart too, whichever budget, and wherever it was refused or cut", async () => {
  const budgets: Budgets[] = [{ max_turns: 1 }, { max_sampled_tokens: 1 }, { max_prompt_tokens: 1 }, { max_log_bytes: 1 }];
  for (const budget of budgets) {
    await using at = await proxyAt(() => ({ text: "ok" }), { store: new DiskStore(scratch) });
    const client = await at.open({ budgets: budget });
    await (await client.chat({ messages: hi })).text();
    await (await client.chat({ messages: [...hi, ...hi] })).text();
    const session = at.proxy.session(client.sessionId);
    await settled(session);
    const rebuilt = await rebuildSession(at.proxy.sessions.store, client.sessionId);
    assert.deepEqual([rebuilt?.state.stopReason, rebuilt?.state.endedBy], ["budget_spent", Object.keys(budget)[0]]);
    assert.deepEqual(rebuilt && stateOf(rebuilt), stateOf(session));
  }
});

test("the last failure of the harness's own work is known after a restart, and that a command's was none", async () => {
  await using at = await proxyAt((request) => {
    return JSON.stringify(request.messages).includes("fail") ? { refuse: { status: 500, message: "boom" } } : { text: "ok" };
  });
  const client = await at.open({ budgets: { max_turns: 3 } });
  const answer = await client.say(hi);
  const lastFailure = async () => {
    await settled(at.proxy.session(client.sessionId));
    const rebuilt = await rebuildSession(at.proxy.sessions.store, client.sessionId);
    assert.deepEqual(rebuilt && stateOf(rebuilt), stateOf(at.proxy.session(client.sessionId)));
    return rebuilt?.state.lastFailure?.error.code ?? null;
  };
  await client.chat({ messages: [{ role: "user", content: "fail" }], tools: [tool("of_a_command")] });
  assert.equal(await lastFailure(), null);
  await client.chat({ messages: [...hi, answer, { role: "user", content: "fail" }] });
  assert.equal(await lastFailure(), "engine_error");
  await client.chat({ messages: [...hi, answer, { role: "user", content: "one too many" }] });
  assert.equal(await lastFailure(), "budget_spent");
});

test("what a full disk refused a command does not hide what it refused the harness", async () => {
  const store = new FaultyStore();
  await using at = await proxyAt(() => ({ text: "ok" }), { store });
  const client = await at.open();
  const answer = await client.say(hi);
  store.full = (entry) => entry.type === "call_begun";
  await client.chat({ messages: [...hi, answer, { role: "user", content: "on" }] });
  await client.chat({ messages: [{ role: "user", content: "of a command" }] });
  store.full = () => false;
  const session = at.proxy.session(client.sessionId);
  await session.reward(null, {});
  const rebuilt = await rebuildSession(store, client.sessionId);
  assert.deepEqual(rebuilt && stateOf(rebuilt), stateOf(session));
  assert.equal(rebuilt?.state.lastFailure?.error.code, "store_full");
});

test("the pin, the first engine and the latest engines of a session are those of its log, in the order in which its tries began", async () => {
  const slow = Promise.withResolvers<void>();
  await using at = await enginesAt(
    (_, request) => ({ text: "ok", ...(JSON.stringify(request.messages).includes("slow") && { beforeEnd: slow.promise }) }),
    { a: { policy: { version: "v1", step: 1 } }, b: { policy: { version: "v1", step: 1 } } },
    { routes: [{ agent: "other", engine: "b" }, { engine: "a" }] },
  );
  const client = await at.open({ policy_mode: "pin" });
  const session = at.proxy.session(client.sessionId);
  const first = client.say([{ role: "user", content: "slow" }]);
  await until(() => at.calls().a === 1);
  assert.deepEqual(session.placement.pinned, { version: "v1", step: 1 }, "while it runs");
  assert.deepEqual([session.placement.engineNames, session.state.tries.engines], [["a"], []]);
  slow.resolve();
  await first;
  await settled(session);
  const rebuilt = await rebuildSession(at.proxy.sessions.store, client.sessionId);
  assert.deepEqual(rebuilt?.placement, session.placement);
  assert.deepEqual(rebuilt?.placement.began?.engine, "a");
});

class Played {
  readonly #at: EnginesAt;
  readonly #client: Client;
  readonly #store: FaultyStore;
  readonly #draw: Draw;
  /** Conversations so far, each with its last request. */
  readonly #asked: unknown[][] = [hi];
  readonly #responses: string[] = [];

  constructor(at: EnginesAt, client: Client, store: FaultyStore, draw: Draw) {
    this.#at = at;
    this.#client = client;
    this.#store = store;
    this.#draw = draw;
  }

  /** Its name. */
  async act(): Promise<string> {
    const { act, often } = this.#draw.of(this.#actions().flatMap((one) => Array.from({ length: one.often }, () => one)));
    await act.call(this);
    return `${act.name} (${often})`;
  }

  #actions(): { act: (this: Played) => Promise<void>; often: number }[] {
    return [
      { act: this.ask, often: 8 },
      { act: this.askAgain, often: 3 },
      { act: this.askTwiceAtOnce, often: 2 },
      { act: this.leave, often: 2 },
      { act: this.askForTitle, often: 1 },
      { act: this.askNonsense, often: 1 },
      { act: this.respond, often: 3 },
      { act: this.readBack, often: 2 },
      { act: this.forget, often: 1 },
      { act: this.askOnFullDisk, often: 2 },
      { act: this.pauseUnderCall, often: 1 },
      { act: this.seal, often: 1 },
    ];
  }

  async ask(): Promise<void> {
    const messages = this.#draw.of([...this.#asked, [{ role: "user", content: this.#words() }]]);
    const answer = await this.#chat(messages);
    if (answer) this.#asked.push([...messages, answer, { role: "user", content: this.#words() }]);
  }

  async askAgain(): Promise<void> {
    await this.#chat(this.#asked.at(-1) as unknown[]);
    await this.#chat(this.#asked.at(-1) as unknown[]);
  }

  async askTwiceAtOnce(): Promise<void> {
    const messages = this.#asked.at(-1) as unknown[];
    await Promise.all([this.#chat(messages), this.#chat(messages), this.#chat([{ role: "user", content: this.#words() }])]);
  }

  async leave(): Promise<void> {
    const leave = new AbortController();
    const begun = this.#at.calls();
    const asked = this.#client.chat({ messages: this.#draw.of(this.#asked), stream: this.#draw.chance(0.5) }, leave.signal);
    const left = asked.then(
      (response) => response.text().catch(() => null),
      () => null,
    );
    await untilOrOver(left, () => JSON.stringify(this.#at.calls()) !== JSON.stringify(begun));
    leave.abort();
    await left;
  }

  async askForTitle(): Promise<void> {
    await this.#chat([...titler, { role: "user", content: this.#words() }]);
  }

  async askNonsense(): Promise<void> {
    await (await this.#client.chat({ messages: this.#draw.of<unknown>(["none", [{ role: "unknown" }], 5]) })).text();
  }

  async respond(): Promise<void> {
    const goesOn = this.#draw.chance(0.6) ? this.#responses.at(-1) : undefined;
    const body = { model: "m", input: this.#words(), ...(goesOn && { previous_response_id: goesOn }) };
    const answer = (await (await this.#client.post("/v1/responses", body)).json()) as { id?: string };
    if (answer.id) this.#responses.push(answer.id);
    if (this.#draw.chance(0.3)) await (await this.#client.post("/v1/conversations", { metadata: { a: "b" } })).text();
  }

  async readBack(): Promise<void> {
    if (this.#responses.length > 0) await this.#record("GET", `/v1/responses/${this.#draw.of(this.#responses)}`);
  }

  async forget(): Promise<void> {
    if (this.#responses.length > 0) await this.#record("DELETE", `/v1/responses/${this.#draw.of(this.#responses)}`);
  }

  async askOnFullDisk(): Promise<void> {
    const types = this.#draw.of<LogEntry["type"][]>([
      ["call_begun"],
      ["call_finished", "answered"],
      ["answered"],
      ["refused", "call_begun"],
    ]);
    this.#store.full = (entry) => types.includes(entry.type);
    await this.#chat(this.#draw.of(this.#asked));
    if (this.#draw.chance(0.5)) await this.#chat(this.#draw.of(this.#asked));
    await settled(this.#at.proxy.session(this.#client.sessionId));
    this.#store.full = () => false;
    if (this.#draw.chance(0.7)) await this.#chat(this.#asked.at(-1) as unknown[]);
  }

  async pauseUnderCall(): Promise<void> {
    const { body } = await this.#at.control("POST", "/pause", {});
    const waiting = this.#chat(this.#asked.at(-1) as unknown[]);
    await untilOrOver(waiting, () => this.#at.proxy.pool.waiting > 0);
    await this.#at.control("POST", "/resume", { fence: body.fence });
    await waiting;
  }

  async seal(): Promise<void> {
    if (this.#draw.chance(0.3)) await this.#at.proxy.session(this.#client.sessionId).seal("done");
  }

  async #chat(messages: unknown[]): Promise<unknown> {
    const more = { stream: this.#draw.chance(0.3), ...(this.#draw.chance(0.2) && { tools: [tool("bash")] }) };
    const model = this.#draw.chance(0.1) ? "judge" : "m";
    const text = await (await this.#client.chat({ model, messages, ...more })).text();
    return more.stream ? null : ((JSON.parse(text) as { choices?: { message: unknown }[] }).choices?.[0]?.message ?? null);
  }

  async #record(method: string, path: string): Promise<void> {
    const headers = { authorization: `Bearer ${this.#client.key}` };
    await (await fetch(this.#at.proxy.url + path, { method, headers })).text();
  }

  #words(): string {
    return this.#draw.of(["go on", "fail", "cut", "go on", "fail once", "and then?", `number ${this.#draw.below(1_000)}`]);
  }
}

function specOf(draw: Draw): Partial<SessionSpec> {
  const sandboxed = draw.chance(0.3);
  return {
    purpose: draw.of(["train", "live"]),
    sandboxed,
    ...(!sandboxed && { relay: draw.of(["buffered", "live"] as const) }),
    policy_mode: draw.of(["pin", "float"]),
    budgets: draw.of<Budgets>([
      {},
      {},
      { max_turns: 6 },
      { max_sampled_tokens: 40 },
      { max_concurrent_calls: 1 },
      { max_log_bytes: 30_000 },
    ]),
  };
}

function reply(draw: Draw, asked: string): ScriptedReply {
  if (asked.endsWith('fail"}]') && draw.chance(0.7)) return { refuse: { status: draw.of([400, 429, 500, 503]), message: "boom" } };
  if (asked.endsWith('fail once"}]') && draw.chance(0.5))
    return draw.of<ScriptedReply>([{ isSilent: true }, { refuse: { status: 503, message: "full" } }]);
  if (asked.endsWith('cut"}]') && draw.chance(0.7)) return { text: "cut off", cutAfter: draw.below(3) };
  const calls = draw.chance(0.2) ? { tool_calls: [{ name: "bash", arguments: '{"a": 1}' }] } : {};
  return { text: draw.of(["ok", "same", "same", "", `fresh ${draw.below(1_000)}`]), ...calls };
}

function tool(name: string) {
  return { type: "function", function: { name, parameters: { type: "object", properties: {} } } };
}

/** Waits until it is true, or can no longer become so. */
async function untilOrOver(work: Promise<unknown>, isTrue: () => boolean): Promise<void> {
  let isOver = false;
  const end = () => {
    isOver = true;
  };
  work.then(end, end);
  await until(() => isOver || isTrue());
}

async function settled(session: Session): Promise<void> {
  await until(() => session.running.inFlight().length === 0);
  await session.running.idle();
}

async function assertFolded(store: FaultyStore, session: Session, what: string): Promise<void> {
  const rebuilt = await rebuildSession(store, session.id);
  assert.ok(rebuilt);
  assert.deepEqual(stateOf(rebuilt), stateOf(session), what);
  // Only this process knows of a call that could not be written down.
  if (session.running.isBusy) return;
  assert.deepEqual([rebuilt.spent, rebuilt.placement, rebuilt.callCount], [session.spent, session.placement, session.callCount], what);
}
