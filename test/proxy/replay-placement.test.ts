/** With several engines, a fork goes to the engine that sampled its prompt before. A resumed session stays at its engine. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { LogEntry } from "../../base/schema/session-log.ts";
import { cutAfter, Replay, type SessionRecording, toRecording } from "../../proxy/index.ts";
import { MemoryStore } from "../../proxy/store/index.ts";
import { type EnginesAt, enginesAt } from "../fakes/proxies/engines-at.ts";
import { Client } from "../fakes/proxies/proxy-at.ts";

type Chat = Record<string, unknown>[];

const engines = ["a", "b"];
const spec = { purpose: "train", continuity: "auto", sandboxed: true, any_model: false } as const;
const policy = { policy: { version: "v1", step: 1 } };

/** Asks one question a turn. Calls `before` ahead of each turn. */
async function talk(client: Client, turns: number, before: (turn: number) => void = () => undefined): Promise<void> {
  const chat: Chat = [];
  for (let turn = 0; turn < turns; turn++) {
    before(turn);
    chat.push({ role: "user", content: `question ${turn}` });
    chat.push(await client.say(chat));
  }
  await client.settled();
}

/** Lets only this engine take calls; null: all engines. */
function onlyAt({ proxy }: EnginesAt, name: string | null): void {
  for (const slot of proxy.pool.slots) slot.isDraining = name !== null && slot.name !== name;
  proxy.pool.changed();
}

/** Records a session whose turns are sampled at these engines, one for each turn. */
async function recorded(at: EnginesAt, places: readonly string[]): Promise<SessionRecording> {
  const client = await at.open(spec);
  await talk(client, places.length, (turn) => onlyAt(at, places[turn] ?? null));
  onlyAt(at, null);
  await at.proxy.sessions.close(at.proxy.session(client.sessionId), "over");
  return toRecording(client.sessionId, await client.entries());
}

async function fork(at: EnginesAt, recording: SessionRecording, turn: number, more: { policy_mode?: "pin" } = {}): Promise<Client> {
  const client = await at.open({ ...spec, ...more });
  const cut = cutAfter(recording, turn);
  at.proxy.session(client.sessionId).replay = new Replay({ recording, cut, after: "sample", words: "go_on" });
  return client;
}

/** Returns the engines that sampled the session's own turns, not its replayed ones. */
async function enginesAsked(client: Client): Promise<(string | null)[]> {
  const own = toRecording(client.sessionId, await client.entries()).calls.filter(({ finished }) => finished?.replayed_from === undefined);
  return own.flatMap(({ tries }) => tries.map(({ engine_name }) => engine_name));
}

test("each fork of a turn goes to the engine that sampled this turn in the record", async () => {
  await using at = await enginesAt(() => ({ text: "ok" }), { a: policy, b: policy });
  for (const home of engines) {
    const other = home === "a" ? "b" : "a";
    const recording = await recorded(at, [home, other, other]);
    for (const [turn, place] of [
      [0, home],
      [1, other],
      [2, other],
    ] as const)
      for (let one = 0; one < 3; one++) {
        const client = await fork(at, recording, turn);
        await talk(client, 3);
        assert.deepEqual(await enginesAsked(client), Array(3 - turn).fill(place), `fork ${one} after turn ${turn}`);
      }
  }
});

test("a fork goes to another engine at once if its own is full, drained, unwell or gone", async (t) => {
  const ways: Record<string, (at: EnginesAt) => Promise<void>> = {
    full: async ({ proxy }) => proxy.pool.named("a").grant(0),
    drained: async (at) => onlyAt(at, "b"),
    unwell: async ({ proxy }) => void proxy.pool.named("a").breaker.checked(false),
    gone: ({ proxy }) => proxy.pool.remove("a", false),
  };
  for (const [name, spoil] of Object.entries(ways))
    await t.test(name, async () => {
      await using at = await enginesAt(() => ({ text: "ok" }), { a: { ...policy, callsAtOnce: 4 }, b: policy });
      const recording = await recorded(at, ["a", "a", "a"]);
      await spoil(at);
      const client = await fork(at, recording, 2);
      await talk(client, 3);
      assert.deepEqual(await enginesAsked(client), ["b"]);
      const [, , own] = (await client.trajectory()).calls;
      assert.deepEqual([own?.continuity?.mode, own?.outcome], ["recorded", "delivered"]);
    });
});

test("a session resumed in another process stays at the engine of its last finished call", async () => {
  for (const home of engines) {
    await using first = await enginesAt(() => ({ text: "ok" }), { a: policy, b: policy });
    const client = await first.open({ ...spec, rollout_id: "r", attempt: 1 });
    await talk(client, 3, () => onlyAt(first, home));
    const lines = (await client.entries()) as LogEntry[];
    const store = new MemoryStore();
    await using at = await enginesAt(() => ({ text: "ok" }), { a: policy, b: policy }, { store });
    const finished = lines.flatMap(({ type }, index) => (type === "call_finished" ? [index] : []));
    await (await store.open(client.sessionId)).append(...lines.slice(0, (finished[1] ?? 0) + 1));
    await at.proxy.resumeSession(client.sessionId, { attempt: 2 });
    const again = new Client(at.proxy, client.sessionId, client.key);
    await talk(again, 3);
    assert.deepEqual(at.calls(), { a: home === "a" ? 1 : 0, b: home === "b" ? 1 : 0 });
  }
});

test("a fork with `policy_mode: pin` samples under the policy in force, and stays with it", async () => {
  const newer = { policy: { version: "v2", step: 2 } };
  await using at = await enginesAt(() => ({ text: "ok" }), { a: policy, b: newer });
  const recording = await recorded(at, ["a", "a", "a"]);
  onlyAt(at, "b");
  const client = await fork(at, recording, 1, { policy_mode: "pin" });
  await talk(client, 2);
  assert.deepEqual(await enginesAsked(client), ["b"], "the record's policy, which no engine serves any more, does not bind it");
  onlyAt(at, "a");
  await assert.rejects(client.say([{ role: "user", content: "more" }]), /policy_gone|pinned/, "its own first turn does");
});
