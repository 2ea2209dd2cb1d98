/** Which tokens SGLang's sampling kept, over its wire as the source of 0.5.23 has it. A real server needs a GPU for this, and none was tried. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine, SampleEvent } from "../../../engines/engine.ts";
import { engineNamed } from "../../../engines/registry.ts";
import { patience, sampleAll } from "../../contracts/engine-cases.ts";
import { type SglangExperts, sglangWith } from "../../fakes/engines/scripted-sglang.ts";
import { ScriptedWire } from "../../fakes/engines/scripted-wire.ts";

async function withSglang(support: SglangExperts["support"], body: (engine: Engine, wire: ScriptedWire) => Promise<void>): Promise<void> {
  await using wire = await ScriptedWire.start(sglangWith({ told: null, ...(support && { support }) }), () => ({ text: "two words" }));
  const engine = engineNamed("sglang").create({ baseUrl: wire.url, apiKey: null });
  try {
    await body(engine, wire);
  } finally {
    await engine.close();
  }
}

const tokensOf = (events: SampleEvent[]) => events.filter((event) => event.type === "tokens");
const asked = { support: true, sampling: { temperature: 1, top_k: 5, top_p: 0.9 } };

test("the probe finds that the server tells kept tokens, and up to which `top_k`", async () => {
  for (const [support, found] of [
    ["told", { most: 2048, bounded: true }],
    ["other", undefined],
    ["short", undefined],
    [undefined, undefined],
  ] as const)
    await withSglang(support, async (engine) => assert.deepEqual((await engine.probe(patience())).support, found, support));
});

test("a request that asks for them gets the sets, and the logprobs over them in place of the others", async () => {
  await withSglang("told", async (engine, wire) => {
    const [plain] = tokensOf(await sampleAll(engine));
    assert.deepEqual([plain?.support, wire.requests.at(-1)?.return_sampling_mask], [undefined, undefined]);
    const [told] = tokensOf(await sampleAll(engine, asked));
    assert.equal(wire.requests.at(-1)?.return_sampling_mask, true);
    assert.deepEqual(
      told?.support,
      told?.token_ids.map((id) => [id, id + 1]),
    );
    assert.deepEqual(
      told?.logprobs,
      plain?.logprobs.map((one) => (one ?? 0) / 2),
    );
  });
});

test("sets that do not fit the sampled tokens are none, and the logprobs stay the server's others", async () => {
  for (const support of ["other", "short"] as const)
    await withSglang(support, async (engine) => {
      const [plain] = tokensOf(await sampleAll(engine));
      const [told] = tokensOf(await sampleAll(engine, asked));
      assert.deepEqual(new Set(told?.support), new Set(["misfit"]), support);
      assert.deepEqual(told?.logprobs, plain?.logprobs, support);
    });
});
