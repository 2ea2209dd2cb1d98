/**
 * The sglang engine against SGLang itself, where one runs: it is too large to be installed for the tests. Start it with
 * a tool parser for its model and give its address in ALIDADE_TEST_SGLANG_URL.
 */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { AlidadeError } from "../../base/errors.ts";
import type { Message } from "../../base/schema/message.ts";
import { IdText } from "../../base/tokens/id-text.ts";
import type { Engine, SampleRequest } from "../../engines/engine.ts";
import { engineNamed } from "../../engines/registry.ts";
import { bashTool, forcedTurns, type ReadTurn, read, request, said } from "./vllm-samples.ts";

/** Prefill and sampling round differently in bfloat16, in which SGLang runs on a CPU. */
const tolerance = 0.05;

const user = (text: string): Message => ({ role: "user", parts: [{ type: "text", text }] });

const baseUrl = process.env.ALIDADE_TEST_SGLANG_URL;

/** Not one that is left out where there is no SGLang: its recorded answers are replayed in test/engines/ always. */
function onSglang(title: string, body: (t: TestContext) => Promise<void>): void {
  if (baseUrl) test(title, body);
}

async function withSglang(t: TestContext, body: (engine: Engine, model: string) => Promise<void>): Promise<void> {
  const engine = engineNamed("sglang").create({ baseUrl: baseUrl ?? "", apiKey: null });
  try {
    const { models } = await engine.probe(t.signal);
    await body(engine, models[0] ?? assert.fail("it serves no model"));
  } finally {
    await engine.close();
  }
}

async function sample(engine: Engine, model: string, fields: Partial<SampleRequest>, signal: AbortSignal): Promise<ReadTurn> {
  const asked = request({ model }, { sampling: { temperature: 1, max_tokens: 48 }, ...fields });
  return read(await Array.fromAsync(engine.sample(asked, signal)));
}

onSglang("SGLang takes prompt ids, gives them back, and reads an answer on them as one on messages", async (t) => {
  await withSglang(t, async (engine, model) => {
    assert.equal((await engine.probe(t.signal)).token_in, true);
    const { prompt } = await sample(engine, model, { tools: [bashTool] }, t.signal);
    for (const [name, text] of Object.entries(forcedTurns)) {
      const fields = { tools: [bashTool], sampling: { temperature: 1, max_tokens: 200, structured_outputs: { choice: [text] } } };
      const rendered = await sample(engine, model, fields, t.signal);
      const given = await sample(engine, model, { ...fields, prompt_ids: IdText.of(prompt) }, t.signal);
      assert.deepEqual([given.prompt, given.end.misaligned], [prompt, undefined], name);
      assert.deepEqual(
        { ...said(given), finish: given.end.finish_reason },
        { ...said(rendered), finish: rendered.end.finish_reason },
        name,
      );
      assert.equal(given.end.usage.sampled_tokens, given.ids.length, name);
    }
  });
});

onSglang("what SGLang recorded on given ids is what it scores for them", async (t) => {
  await withSglang(t, async (engine, model) => {
    const first = await sample(engine, model, {}, t.signal);
    const prompt_ids = [...first.prompt, ...first.ids, 10, 11];
    const second = await sample(engine, model, { prompt_ids: IdText.of(prompt_ids) }, t.signal);
    const scored = (await engine.score?.(model, [...prompt_ids, ...second.ids], t.signal)) ?? assert.fail("it scores");
    const worst = (from: number, turn: ReadTurn) =>
      Math.max(...turn.ids.map((_, at) => Math.abs((scored[from + at] ?? Number.NaN) - (turn.logprobs[at] ?? Number.NaN))));
    const distances = [worst(first.prompt.length, first), worst(prompt_ids.length, second)];
    t.diagnostic(`max |recorded - scored| = ${distances.map((each) => each.toExponential(2)).join(", ")} nats`);
    assert.ok(distances.every((each) => each <= tolerance));
  });
});

onSglang("SGLang renders a conversation as its chat does, and its text encodes to its ids", async (t) => {
  await withSglang(t, async (engine, model) => {
    const conversation = {
      messages: [
        { role: "system", parts: [{ type: "text", text: "Be brief." }] },
        user("naïve 日本"),
        { role: "assistant", parts: [{ type: "tool_call", id: "c1", name: "bash", arguments: '{"command":  "ls"}', kind: "function" }] },
        { role: "tool", parts: [{ type: "tool_result", call_id: "c1", content: [{ type: "text", text: "a.txt" }], is_error: false }] },
      ] satisfies Message[],
      tools: [bashTool],
    };
    const { prompt } = await sample(engine, model, conversation, t.signal);
    const render = engine.render?.bind(engine) ?? assert.fail("it renders");
    const open = await render(model, { ...conversation, generation: true }, t.signal);
    const closed = await render(model, { ...conversation, generation: false }, t.signal);
    assert.deepEqual(open.token_ids, prompt);
    assert.ok(open.text.startsWith(closed.text) && open.text.length > closed.text.length);
    assert.deepEqual(await engine.tokenize?.(model, { text: open.text }, t.signal), open.token_ids);
  });
});

onSglang("a prompt without a template is sampled on by SGLang as it stands, as text and as ids", async (t) => {
  await withSglang(t, async (engine, model) => {
    const ids = (await engine.tokenize?.(model, { text: "the sea" }, t.signal)) ?? assert.fail("it tokenizes");
    const sampling = { temperature: 1, max_tokens: 7, ignore_eos: true };
    for (const prompt of [{ text: "the sea" }, { token_ids: ids }]) {
      const turn = await sample(engine, model, { prompt, messages: [], sampling }, t.signal);
      assert.deepEqual([turn.prompt, turn.ids.length, turn.end.finish_reason, turn.end.misaligned], [ids, 7, "length", undefined]);
      assert.ok(turn.logprobs.every((logprob) => logprob !== null && logprob <= 0));
    }
  });
});

onSglang("SGLang's refusals about ids are typed, and cost the next call nothing", async (t) => {
  await withSglang(t, async (engine, model) => {
    const { max_model_len } = await engine.probe(t.signal);
    for (const [fields, code] of [
      [{ prompt_ids: IdText.of(new Array<number>((max_model_len ?? 0) + 10).fill(5)) }, "context_length_exceeded"],
      [{ prompt: { token_ids: new Array<number>((max_model_len ?? 0) + 10).fill(5) }, messages: [] }, "context_length_exceeded"],
      // As prompt_ids it would end the server; those come from its own answers, and this from a harness.
      [{ prompt: { token_ids: [5, 99_999_999] }, messages: [] }, "request_invalid"],
    ] as const) {
      const error = await sample(engine, model, fields as Partial<SampleRequest>, t.signal).catch((thrown: unknown) => thrown);
      assert.ok(error instanceof AlidadeError, `${code}: ${JSON.stringify(error)}`);
      assert.equal(error.code, code, error.message);
    }
    assert.ok((await sample(engine, model, { prompt_ids: IdText.of([5, 6]) }, t.signal)).ids.length > 0);
  });
});
