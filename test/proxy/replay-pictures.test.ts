/** A fork of a rollout that saw pictures: the engine is given the recorded prompt as it takes prompts, with one pad a picture. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { engineNamed } from "../../engines/registry.ts";
import { type PracticeEngineOptions, startPracticeEngine } from "../../practice/start.ts";
import { cutAfter, HarnessProxy, Replay, toRecording } from "../../proxy/index.ts";
import { MemoryStore } from "../../proxy/store/index.ts";
import { Client } from "../fakes/proxies/proxy-at.ts";
import { pngUrl } from "../fakes/records/png.ts";

type Colour = [number, number, number];
const look = (colour: Colour) => ({
  role: "user",
  content: [
    { type: "text", text: "Look." },
    { type: "image_url", image_url: { url: pngUrl(64, 40, colour) } },
  ],
});
const screens: Colour[] = [
  [1, 2, 3],
  [40, 50, 60],
  [7, 80, 9],
];

async function forkedAt(turn: number, colours: Colour[], options: PracticeEngineOptions = {}) {
  await using scope = new AsyncDisposableStack();
  const engine = scope.use(await startPracticeEngine({ seed: 3, ...options }));
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  scope.defer(() => adapter.close());
  const store = new MemoryStore();
  const proxy = scope.use(await HarnessProxy.start({ engine: adapter, store, version: "test" }));
  const open = async () => {
    const { session, key } = await proxy.openSession({ any_model: true, purpose: "train" });
    return new Client(proxy, session.id, key);
  };
  const drive = async (client: Client, shown: Colour[]) => {
    const chat: Record<string, unknown>[] = [];
    for (const colour of shown) {
      chat.push(look(colour));
      chat.push(await client.say(chat, { max_tokens: 8 }));
    }
  };
  const first = await open();
  await drive(first, screens);
  await first.settled();
  await proxy.sessions.close(proxy.session(first.sessionId), "over");
  const recording = toRecording(first.sessionId, await store.read(first.sessionId));
  const client = await open();
  proxy.session(client.sessionId).replay = new Replay({ recording, cut: cutAfter(recording, turn), after: "sample", words: "go_on" });
  await drive(client, colours);
  return { recorded: recording.calls[turn]?.call, trajectory: await client.trajectory() };
}

test("a fork behind pictures is sampled on the recorded prompt, and its pictures stand where they stood", async () => {
  const { recorded, trajectory } = await forkedAt(1, screens);
  const own = trajectory.calls[1];
  assert.equal(own?.missing, null);
  assert.deepEqual(own?.media, recorded?.outcome?.media);
  assert.equal(own?.prompt_length, recorded?.promptLength);
  assert.equal(own?.continuity?.mode, "recorded");
  assert.equal(trajectory.calls[2]?.missing, null);
});

test("a fork whose tools show another picture now reads the recorded one, as it reads the recorded words", async () => {
  const { recorded, trajectory } = await forkedAt(1, [screens[0] as Colour, [200, 1, 1], [7, 80, 9]]);
  const own = trajectory.calls[1];
  assert.deepEqual([own?.missing, own?.continuity?.mode], [null, "recorded"]);
  assert.deepEqual(own?.media, recorded?.outcome?.media);
  assert.deepEqual([trajectory.calls[2]?.missing, trajectory.calls[2]?.media?.length], [null, 3]);
});

test("a fork behind pictures whose places no record tells says so", async () => {
  await assert.rejects(forkedAt(1, screens, { noScaleOut: true }), /the record does not say where its pictures stand/);
});
