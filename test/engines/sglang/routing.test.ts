/** Which experts SGLang's tokens took, over its wire as the source of 0.5.23 has it. A real server needs a GPU for this, and none was tried. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import type { Engine, SampleEvent } from "../../../engines/engine.ts";
import { engineNamed } from "../../../engines/registry.ts";
import { readRouting } from "../../../engines/sglang/routing.ts";
import { selectRows } from "../../../reconstruct/index.ts";
import { patience, sampleAll } from "../../contracts/engine-cases.ts";
import { bytesOf, expertsAt, scriptedExperts } from "../../fakes/engines/npy.ts";
import type { ScriptedReply } from "../../fakes/engines/scripted-engine.ts";
import { type SglangExperts, sglangWith } from "../../fakes/engines/scripted-sglang.ts";
import { ScriptedWire } from "../../fakes/engines/scripted-wire.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

const model_path = scratchFolder("sglang-experts");
const { experts, layers, top_k } = scriptedExperts;
before(() =>
  writeFile(
    join(model_path, "config.json"),
    JSON.stringify({ n_routed_experts: experts, num_hidden_layers: layers, num_experts_per_tok: top_k }),
  ),
);

async function withSglang(
  server: Partial<SglangExperts>,
  body: (engine: Engine, wire: ScriptedWire) => Promise<void>,
  script: (request: Record<string, unknown>) => ScriptedReply = () => ({ text: "two words" }),
): Promise<void> {
  await using wire = await ScriptedWire.start(sglangWith({ told: "as asked", model_path, ...server }), script);
  const engine = engineNamed("sglang").create({ baseUrl: wire.url, apiKey: null });
  try {
    await body(engine, wire);
  } finally {
    await engine.close();
  }
}

const routingOf = (events: SampleEvent[]) => events.filter((event) => event.type === "routing").map(({ routing }) => routing);

test("what the probe finds decides whether experts are asked for: where they cannot be read, the facts say why and no call asks", async () => {
  for (const [server, facts] of [
    [{}, { routing: "all", missing: undefined, experts }],
    [{ told: "beside" }, { routing: "all", missing: undefined, experts }],
    [{ told: null }, { routing: undefined, missing: undefined, experts }],
    [{ model_path: "Own/Elsewhere" }, { routing: undefined, missing: "no_shape", experts: undefined }],
    [{ told: "short" }, { routing: undefined, missing: "misfit", experts }],
    [{ told: "no base64" }, { routing: undefined, missing: "misfit", experts }],
    [{ options: { enable_hierarchical_cache: true } }, { routing: undefined, missing: "rows_lost", experts }],
    [{ options: { enable_lmcache: true } }, { routing: undefined, missing: "rows_lost", experts }],
    [{ options: { disaggregation_mode: "decode" } }, { routing: undefined, missing: "rows_lost", experts }],
    [{ options: { pp_size: 2 } }, { routing: undefined, missing: "rows_lost", experts }],
    [{ options: null }, { routing: undefined, missing: "rows_lost", experts }],
    [{ options: { disaggregation_mode: "null", pp_size: 1 } }, { routing: "all", missing: undefined, experts }],
  ] as const)
    await withSglang(server, async (engine, wire) => {
      const found = await engine.probe(patience());
      assert.deepEqual({ routing: found.routing, missing: found.routing_missing, experts: found.experts }, facts, JSON.stringify(server));
      const told = routingOf(await sampleAll(engine));
      assert.equal(wire.requests.at(-1)?.return_routed_experts, facts.routing && true);
      assert.equal(told.length, facts.routing ? 1 : 0);
    });
});

test("a raw prompt has its experts too, and a prompt with a picture is not asked for", async () => {
  await withSglang({}, async (engine, wire) => {
    await engine.probe(patience());
    const prompt = { token_ids: [7, 8, 9] };
    const events = await sampleAll(engine, { prompt, messages: [], tools: [], sampling: { max_tokens: 5 } });
    const ids = [...prompt.token_ids, ...events.flatMap((event) => (event.type === "tokens" ? event.token_ids : []))];
    assert.deepEqual([...(routingOf(events)[0]?.bytes ?? [])], ids.map(expertsAt).slice(0, -1).flat(2));
    const picture = { type: "image" as const, url: "data:image/png;base64,AAAA" };
    await sampleAll(engine, { messages: [{ role: "user", parts: [picture] }] });
    assert.equal(wire.requests.at(-1)?.return_routed_experts, undefined);
  });
});

test("numbers are read only if they are as many as the tokens have, in the smallest type that holds all experts", () => {
  const row = { layers: 2, top_k: 2 };
  const base64 = (numbers: number[]) => bytesOf(numbers, "int32").toString("base64");
  const read = (text: string, tokens: number, count: number, start = 0) => readRouting(text, start, tokens, { count, row });
  const two = [0, 1, 2, 3, 4, 5, 6, 7];
  for (const [count, dtype] of [
    [8, "uint8"],
    [256, "uint8"],
    [257, "uint16"],
    [65_537, "int32"],
  ] as const)
    assert.deepEqual(read(base64(two), 3, count), { start: 0, rows: 2, ...row, dtype, bytes: bytesOf(two, dtype) });
  assert.deepEqual(read(base64(two), 8, 8, 5)?.start, 5);
  for (const tokens of [0, 1, 2, 4]) assert.equal(read(base64(two), tokens, 8), null);
  assert.equal(read("", 1, 8), null);
  assert.equal(read(`${base64(two).slice(0, -2)}==`, 3, 8), null);
  // What is no expert of the model is left as it came: the call says that it does not fit.
  for (const strange of [-1, 8]) assert.equal(read(base64([...two.slice(1), strange]), 3, 8)?.dtype, "int32");
});

test("all turns of a session together have one row for each token but the last, live ones too, and wrong numbers are none with the reason", async () => {
  for (const [told, relay] of [
    ["as asked", "buffered"],
    ["as asked", "live"],
    ["negative", "buffered"],
  ] as const) {
    const turns = ["one", "two: é", "three"];
    let turn = 0;
    const script = (request: Record<string, unknown>) => ({ text: request.probe ? "x" : (turns[turn++] ?? "") });
    await withSglang(
      { told },
      async (engine, wire) => {
        await using at = await proxyAt(() => ({}), { engine });
        const client = await at.open({ purpose: "train", continuity: "auto", relay });
        const messages: unknown[] = [{ role: "user", content: "go" }];
        for (const _ of turns) messages.push(await client.say(messages), { role: "user", content: "on" });
        const trajectory = await client.trajectory();
        const isTold = told === "as asked";
        assert.deepEqual(
          trajectory.calls.map(({ routing }) => routing),
          turns.map(() => (isTold ? "recorded" : "misfit")),
        );
        const [row] = selectRows(trajectory).rows;
        assert.ok(row && row.trained_tokens > 0);
        const media = at.proxy.sessions.store.media;
        const bytes = (row.routing ?? []).flatMap((part) => {
          const size = part.layers * part.top_k;
          return [...(media?.read(part.sha256) ?? Buffer.alloc(0)).subarray(part.row * size, (part.row + part.length) * size)];
        });
        assert.deepEqual(bytes, isTold ? row.token_ids.map(expertsAt).slice(0, -1).flat(2) : []);
        assert.deepEqual(at.unseen, []);
        assert.equal(wire.requests.length, turns.length);
      },
      script,
    );
  }
});
