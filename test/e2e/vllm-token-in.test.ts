/**
 * Token-in on vLLM itself: the prompt's ids are sampled on as they were sent, the answer is read as chat reads it, and
 * everything else about a call (errors, cache, cancel, grammars, stop strings) is what it is on messages.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError } from "../../base/errors.ts";
import type { Sampling } from "../../base/schema/message.ts";
import { IdText } from "../../base/tokens/id-text.ts";
import type { Engine, SampleRequest } from "../../engines/engine.ts";
import type { Vllm } from "../interop/vllm/start.ts";
import { need } from "../needs.ts";
import { bashTool, forcedTurns, neutral, type ReadTurn, read, request, said, score, tolerance, withVllm } from "./vllm-samples.ts";

const sample = async (engine: Engine, asked: SampleRequest, signal: AbortSignal): Promise<ReadTurn> =>
  read(await Array.fromAsync(engine.sample(asked, signal)));

test("for the same ids vLLM says the same, whether it rendered the prompt or was given it", async (t) => {
  if (!(await need(t, "vllm"))) return;
  await withVllm(t.signal, async (engine, vllm) => {
    assert.ok((await engine.probe(t.signal)).token_in);
    const forced = Object.entries(forcedTurns).flatMap(([name, text]): [string, Sampling][] =>
      [undefined, 4, 12].map((max_tokens) => [
        `${name}, ${max_tokens ?? "whole"}`,
        { structured_outputs: { choice: [text] }, max_tokens: max_tokens ?? 200 },
      ]),
    );
    const free = Array.from({ length: 12 }, (_, at): [string, Sampling] => [`free ${at}`, { max_tokens: 48 }]);
    const stopped: [string, Sampling][] = [
      ["a stop string in text", { structured_outputs: { choice: ["one STOP two"] }, stop: ["STOP"], max_tokens: 50 }],
      [
        "a stop string in a call",
        {
          structured_outputs: { choice: ['<tool_call>\n{"name": "bash", "arguments": {"command": "STOP"}}\n</tool_call>'] },
          stop: ["STOP"],
          max_tokens: 50,
        },
      ],
      ["a stop token", { structured_outputs: { choice: ["abc abc abc"] }, stop_token_ids: [100], max_tokens: 50 }],
    ];
    const outcome = { compared: 0, otherIds: 0, byTheParser: 0 };
    const cases = [...forced, ...free, ...stopped].map(([name, sampling], seed) => ({ name, sampling, seed }));
    // A few at a time: the server works on them together.
    await Promise.all(
      Array.from({ length: 6 }, async () => {
        for (let one = cases.pop(); one; one = cases.pop()) await compare(engine, vllm, one, outcome, t.signal);
      }),
    );
    t.diagnostic(JSON.stringify(outcome));
    // Seeds make the samples equal but for what batches of another shape round.
    assert.ok(outcome.otherIds <= outcome.compared / 20, JSON.stringify(outcome));
    assert.ok(outcome.compared > 90);
  });
});

type Outcome = { compared: number; otherIds: number; byTheParser: number };

async function compare(
  engine: Engine,
  vllm: Vllm,
  { name, sampling, seed }: { name: string; sampling: Sampling; seed: number },
  outcome: Outcome,
  signal: AbortSignal,
): Promise<void> {
  const asked = () => request(vllm, { tools: [bashTool], sampling: { ...neutral, ...sampling, seed } });
  const rendered = await sample(engine, asked(), signal);
  const given = await sample(engine, { ...asked(), prompt_ids: IdText.of(rendered.prompt) }, signal);
  assert.deepEqual(given.prompt, rendered.prompt, name);
  assert.equal(given.end.misaligned, undefined, name);
  outcome.compared++;
  if (given.ids.join() !== rendered.ids.join()) return void outcome.otherIds++;
  for (const [at, logprob] of given.logprobs.entries())
    assert.ok(Math.abs((logprob ?? Number.NaN) - (rendered.logprobs[at] ?? Number.NaN)) <= tolerance, `${name}: logprob ${at}`);
  assert.equal(given.end.usage.sampled_tokens, given.ids.length, name);
  const expected = [said(rendered)];
  // vLLM's parser reads chunk by chunk, and a broken call differently where the chunks fall differently.
  while (!expected.some((each) => JSON.stringify(each) === JSON.stringify(said(given))) && expected.length < 6) {
    outcome.byTheParser++;
    expected.push(said(await sample(engine, asked(), signal)));
  }
  assert.ok(
    expected.some((each) => JSON.stringify(each) === JSON.stringify(said(given))),
    `${name}: ${JSON.stringify({ expected, given: said(given) })}`,
  );
}

test("a second turn goes on from the sampled ids themselves, is scored as it was recorded, and finds its prefix cached", async (t) => {
  if (!(await need(t, "vllm"))) return;
  await withVllm(t.signal, async (engine, vllm) => {
    await engine.probe(t.signal);
    const long = [{ role: "user" as const, parts: [{ type: "text" as const, text: "Tell me about the sea. ".repeat(60) }] }];
    const salt = `salt ${Math.random()}`;
    const first = await sample(engine, request(vllm, { messages: long, cache_salt: salt }), t.signal);
    const suffix =
      (await engine.tokenize?.(vllm.model, { text: "\n<|im_start|>user\nmore<|im_end|>\n<|im_start|>assistant\n" }, t.signal)) ?? [];
    const prompt_ids = [...first.prompt, ...first.ids, ...suffix];
    const second = await sample(engine, request(vllm, { messages: long, prompt_ids: IdText.of(prompt_ids), cache_salt: salt }), t.signal);
    assert.deepEqual(second.prompt, prompt_ids);
    assert.ok((second.end.usage.cached_tokens ?? 0) >= first.prompt.length - 128, `cached ${second.end.usage.cached_tokens}`);
    const other = await sample(
      engine,
      request(vllm, { messages: long, prompt_ids: IdText.of(prompt_ids), cache_salt: `another ${salt}` }),
      t.signal,
    );
    assert.ok((other.end.usage.cached_tokens ?? 0) < 128, "another salt shares no prefix");
    const scored = await score(vllm, [...prompt_ids, ...second.ids], t.signal);
    const worst = (from: number, turn: ReadTurn) =>
      Math.max(
        ...turn.ids.map((id, at) => Math.abs((scored[from + at]?.[String(id)]?.logprob ?? Number.NaN) - (turn.logprobs[at] ?? Number.NaN))),
      );
    // One sequence holds both turns: the first one's logprobs are still those of its tokens.
    const distances = [worst(first.prompt.length, first), worst(prompt_ids.length, second)];
    t.diagnostic(`max |recorded - scored| = ${distances.map((each) => each.toExponential(2)).join(", ")} nats`);
    assert.ok(distances.every((each) => each <= tolerance));
  });
});

test("a conversation is rendered as chat renders it, with tools, and its text encodes to its ids", async (t) => {
  if (!(await need(t, "vllm"))) return;
  await withVllm(t.signal, async (engine, vllm) => {
    const conversation: Partial<SampleRequest> = {
      messages: [
        { role: "system", parts: [{ type: "text", text: "Be brief." }] },
        { role: "user", parts: [{ type: "text", text: "naïve 日本" }] },
        { role: "assistant", parts: [{ type: "tool_call", id: "c1", name: "bash", arguments: '{"command":  "ls"}', kind: "function" }] },
        { role: "tool", parts: [{ type: "tool_result", call_id: "c1", content: [{ type: "text", text: "a.txt" }], is_error: false }] },
      ],
      tools: [bashTool],
    };
    const template = "{% for message in messages %}{{ message.role }}, {% endfor %}{{ documents | length }} {{ reasoning_effort }}";
    const told: Sampling[] = [
      {},
      { reasoning_effort: "none" },
      { chat_template_kwargs: { enable_thinking: false } },
      { chat_template: template, documents: [{ title: "a" }], reasoning_effort: "low" },
    ];
    const render = engine.render?.bind(engine) ?? assert.fail();
    const texts = new Set<string>();
    for (const sampling of told) {
      const asked = request(vllm, { ...conversation, sampling: { ...neutral, ...sampling, max_tokens: 1 } });
      const { prompt } = await sample(engine, asked, t.signal);
      const open = await render(vllm.model, { ...asked, generation: true }, t.signal);
      assert.deepEqual(open.token_ids, prompt, JSON.stringify(sampling));
      assert.deepEqual(await engine.tokenize?.(vllm.model, { text: open.text }, t.signal), open.token_ids);
      texts.add(open.text);
    }
    const [open = "", thoughtless, ...others] = texts;
    assert.ok(thoughtless?.startsWith(open) && others.length === 1, [...texts].join("\n"));
    const closed = await render(vllm.model, { ...request(vllm, conversation), generation: false }, t.signal);
    assert.ok(open.startsWith(closed.text) && open.endsWith("assistant\n") && closed.text.includes("<|im_end|>"));
  });
});

test("what vLLM refuses about ids is typed as it is for messages, and costs it nothing", async (t) => {
  if (!(await need(t, "vllm"))) return;
  await withVllm(t.signal, async (engine, vllm) => {
    const { max_model_len } = await engine.probe(t.signal);
    const refused: [Partial<SampleRequest>, string][] = [
      [{ prompt_ids: IdText.of(new Array<number>(max_model_len ?? 0).fill(5)) }, "context_length_exceeded"],
      [{ prompt_ids: IdText.of(new Array<number>((max_model_len ?? 0) + 100).fill(5)) }, "context_length_exceeded"],
      [{ prompt_ids: IdText.of([5, 999_999]) }, "request_invalid"],
      [{ prompt_ids: IdText.of([5]), model: "absent" }, "model_unknown"],
      [{ prompt_ids: IdText.of([5]), sampling: { structured_outputs: { regex: "(" } } }, "request_invalid"],
    ];
    for (const [fields, code] of refused) {
      const error = await sample(engine, request(vllm, fields), t.signal).catch((thrown: unknown) => thrown);
      assert.ok(error instanceof AlidadeError, `${code}: ${JSON.stringify(error)}`);
      assert.equal(error.code, code, error.message);
    }
    const last = await sample(
      engine,
      request(vllm, { prompt_ids: IdText.of([5, 6, 7]), sampling: { ...neutral, max_tokens: 3, ignore_eos: true } }),
      t.signal,
    );
    assert.deepEqual([last.prompt, last.end.finish_reason], [[5, 6, 7], "length"]);
  });
});

test("the signal stops a generation on ids at vLLM too", async (t) => {
  if (!(await need(t, "vllm"))) return;
  await withVllm(t.signal, async (engine, vllm) => {
    await engine.probe(t.signal);
    const leave = new AbortController();
    const sampling = { ...neutral, max_tokens: 20_000, ignore_eos: true };
    await assert.rejects(async () => {
      for await (const event of engine.sample(request(vllm, { prompt_ids: IdText.of([5, 6, 7]), sampling, live: true }), leave.signal))
        if (event.type === "tokens") leave.abort(new AlidadeError("cancelled", "enough"));
    });
    const limit = AbortSignal.timeout(60_000);
    while (((await engine.running?.(limit)) ?? 0) > 0) await sleep(50, undefined, { signal: limit });
  });
});
