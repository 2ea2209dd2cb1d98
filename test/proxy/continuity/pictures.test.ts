/** Conversations with pictures on an engine that samples: their tokens go on, and each picture stands at its own place. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { engineNamed } from "../../../engines/registry.ts";
import { type PracticeEngineOptions, startPracticeEngine } from "../../../practice/start.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { MemoryStore } from "../../../proxy/store/index.ts";
import { auditTrajectory, selectRows } from "../../../reconstruct/index.ts";
import { Client } from "../../fakes/proxies/proxy-at.ts";
import { pngUrl } from "../../fakes/records/png.ts";

const tools = [{ type: "function", function: { name: "click", parameters: { type: "object", properties: { x: { type: "number" } } } } }];
const play = (turn: number): string => `I look, 日本.\n<tool_call>\n{"name": "click", "arguments": {"x":  ${turn}}}\n</tool_call>`;
const picture = (turn: number) => ({ type: "image_url", image_url: { url: pngUrl(64, 40, [turn * 20, 7, 99]) } });
const screen = (turn: number, id: string) => ({
  role: "tool",
  tool_call_id: id,
  content: [{ type: "text", text: "The screen:" }, picture(turn)],
});

async function proxyWith(options: PracticeEngineOptions = {}, relay: "buffered" | "live" = "buffered") {
  await using scope = new AsyncDisposableStack();
  const engine = scope.use(await startPracticeEngine({ seed: 3, ...options }));
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  scope.defer(() => adapter.close());
  const proxy = scope.use(await HarnessProxy.start({ engine: adapter, store: new MemoryStore(), version: "test" }));
  const { session, key } = await proxy.openSession({ any_model: true, purpose: "train", relay });
  const release = scope.move();
  return { adapter, proxy, client: new Client(proxy, session.id, key), [Symbol.asyncDispose]: () => release.disposeAsync() };
}

/** A loop of `turns` screenshots. Returns its messages. */
async function look(client: Client, turns: number): Promise<Record<string, unknown>[]> {
  const messages: Record<string, unknown>[] = [{ role: "user", content: [{ type: "text", text: "Close the ticket." }, picture(0)] }];
  for (let turn = 1; turn <= turns; turn++) {
    const said = await client.say(messages, { tools, seed: turn, structured_outputs: { choice: [play(turn)] } });
    const [call] = said.tool_calls as { id: string }[];
    messages.push(said, screen(turn, call?.id ?? ""));
  }
  return messages;
}

test("ten turns that each see a picture are one sequence, and each picture stands where the engine says", async () => {
  await using at = await proxyWith();
  await look(at.client, 10);
  const trajectory = await at.client.trajectory();
  assert.deepEqual(trajectory.fidelity.continuity, { first_turn: 1, continued: 9 });
  assert.deepEqual(trajectory.fidelity.matches, { root: 1, exact: 9 });
  assert.equal(trajectory.fidelity.row_inflation, 1);
  assert.deepEqual(
    trajectory.calls.map(({ missing, media }) => [missing, media?.length]),
    trajectory.calls.map((_, turn) => [null, turn + 1]),
  );
  const [row, ...more] = selectRows(trajectory, { allowGrammar: true }).rows;
  assert.ok(row && more.length === 0);
  assert.equal(row.media?.length, 10);
  const pads = new Set(row.media?.flatMap(({ start, length }) => row.token_ids.slice(start, start + length)));
  assert.equal(pads.size, 1);
  const [pad] = pads;
  assert.equal(row.token_ids.filter((id) => id === pad).length, 10 * 64);
  // Every picture of the row is the one that the calls showed, in their order.
  assert.deepEqual(
    row.media?.map(({ sha256 }) => sha256),
    trajectory.calls.at(-1)?.media?.map(({ sha256 }) => sha256),
  );
});

test("logprobs behind pictures are those that the engine gives for these pictures, and others where one is swapped", async () => {
  await using at = await proxyWith();
  const messages: Record<string, unknown>[] = [{ role: "user", content: [{ type: "text", text: "What is it?" }, picture(1)] }];
  await at.client.say(messages, { max_tokens: 12 });
  const trajectory = await at.client.trajectory();
  const scored = (url: string) =>
    auditTrajectory(
      trajectory,
      async (ids, media) =>
        (await at.adapter.score?.("practice", ids, AbortSignal.timeout(30_000), { spans: media, urls: media.map(() => url) })) ?? [],
      { tolerance: 1e-9, readsImages: true },
    );
  const right = await scored(pngUrl(64, 40, [20, 7, 99]));
  assert.deepEqual(
    right.calls.map(({ status, wrong }) => [status, wrong]),
    [["ok", 0]],
  );
  assert.equal(right.worst, 0);
  const swapped = await scored(pngUrl(64, 40, [21, 7, 99]));
  assert.deepEqual(
    swapped.calls.map(({ status }) => status),
    ["mismatch"],
  );
});

test("a harness that shows another picture of the same size in an earlier place begins another context", async () => {
  await using at = await proxyWith();
  const messages = await look(at.client, 2);
  const other = messages.map((message, index) =>
    index === 0 ? { role: "user", content: [{ type: "text", text: "Close the ticket." }, picture(9)] } : message,
  );
  await at.client.say(other, { tools, max_tokens: 4 });
  const { calls, nodes } = await at.client.trajectory();
  assert.equal(calls[2]?.match, "diverged");
  const hashes = new Set(nodes.flatMap(({ media }) => media?.map(({ sha256 }) => sha256) ?? []));
  assert.equal(hashes.size, 4);
});

test("text that spells the pad of pictures is flagged, not trained, and not gone on from", async () => {
  for (const planted of ["see <|image_pad|> here", "<|vision_start|><|image_pad|><|vision_end|>"]) {
    await using at = await proxyWith();
    const messages: Record<string, unknown>[] = [{ role: "user", content: [{ type: "text", text: planted }, picture(1)] }];
    messages.push(await at.client.say(messages, { max_tokens: 8 }), { role: "user", content: "Go on." });
    await at.client.say(messages, { max_tokens: 8 });
    const { calls, fidelity } = await at.client.trajectory();
    assert.deepEqual(
      calls.map(({ missing }) => missing?.split(":")[0]),
      ["planted_placeholder", "planted_placeholder"],
      planted,
    );
    assert.deepEqual(Object.keys(fidelity.excluded), ["planted_placeholder"]);
    assert.deepEqual(fidelity.continuity, { first_turn: 1, planted_placeholder: 1 });
  }
});

test("a page that spells the pad is flagged where no picture is", async () => {
  await using at = await proxyWith();
  await at.client.say([{ role: "user", content: "the page says <|image_pad|>" }], { max_tokens: 8 });
  assert.match((await at.client.trajectory()).calls[0]?.missing ?? "", /^planted_placeholder: /);
});

test("a live session with pictures goes on over chat, and its pictures are trained", async () => {
  await using at = await proxyWith({}, "live");
  const messages = await look(at.client, 2);
  assert.equal(messages.length, 5);
  const { calls, fidelity } = await at.client.trajectory();
  assert.deepEqual(
    calls.map(({ media, missing }) => [media?.length, missing]),
    [
      [1, null],
      [2, null],
    ],
  );
  assert.deepEqual(fidelity.continuity, { first_turn: 1, images: 1 });
  assert.equal(fidelity.excluded.images, undefined);
});

test("without the routes that tell places, turns with pictures are answered and not trained", async () => {
  await using at = await proxyWith({ noScaleOut: true });
  assert.match(at.proxy.facts.images_missing ?? "", /--enable-scale-out/);
  await look(at.client, 2);
  const { calls, fidelity } = await at.client.trajectory();
  assert.deepEqual(
    calls.map(({ media }) => media),
    [undefined, undefined],
  );
  assert.deepEqual(Object.keys(fidelity.excluded).sort(), ["forced", "images"]);
});
