/**
 * The vllm engine against vLLM itself: what its contract says, what the server does in the cases that bite, and whether
 * the recorded logprobs are those of the recorded tokens, by the server's own scoring of the same ids.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError } from "../../base/errors.ts";
import type { SampleRequest } from "../../engines/engine.ts";
import { need } from "../needs.ts";
import { assertSpells, neutral, read, request, said, score, tolerance, bashTool as tool, withVllm } from "./vllm-samples.ts";

test("what was recorded of free samples is what vLLM scores for the same ids", async (t) => {
  if (!(await need(t, "vllm"))) return;
  await withVllm(t.signal, async (engine, vllm) => {
    let worst = 0;
    let count = 0;
    let shifted = 0;
    for (let sample = 0; sample < 8; sample++) {
      // Seeds only so that a failure can be seen again.
      const { prompt, ids, logprobs, end } = read(
        await Array.fromAsync(engine.sample(request(vllm, { sampling: { ...neutral, max_tokens: 64, seed: sample } }), t.signal)),
      );
      assert.equal(ids.length, end.usage.sampled_tokens);
      const scored = await score(vllm, [...prompt, ...ids], t.signal);
      for (const [at, id] of ids.entries()) {
        const expected = scored[prompt.length + at]?.[String(id)]?.logprob;
        const recorded = logprobs[at];
        assert.ok(typeof expected === "number" && typeof recorded === "number", `token ${at} of sample ${sample}`);
        worst = Math.max(worst, Math.abs(expected - recorded));
        shifted = Math.max(shifted, Math.abs(expected - (logprobs[at - 1] ?? expected)));
        count++;
      }
    }
    t.diagnostic(`max |recorded - scored| = ${worst.toExponential(2)} nats over ${count} tokens`);
    assert.ok(worst <= tolerance, `${worst} is more than ${tolerance}`);
    assert.ok(shifted > 0.01, "held against the tokens one later they are other numbers: the comparison can fail");
  });
});

test("the probe sees vLLM as it is: raw logprobs under the grammar's mask, roles, routes, fingerprints", async (t) => {
  if (!(await need(t, "vllm"))) return;
  await withVllm(t.signal, async (engine, vllm) => {
    const facts = await engine.probe(t.signal);
    t.diagnostic(JSON.stringify(facts));
    assert.deepEqual([facts.missing, facts.token_ids, facts.logprobs, facts.logprob_semantics], [null, true, true, "raw"]);
    assert.equal(facts.grammar_logprobs, "masked");
    assert.ok(facts.models.includes(vllm.model));
    assert.match(facts.fingerprints?.template ?? "", /^[0-9a-f]{16}$/);
    assert.match(facts.fingerprints?.tokenizer ?? "", /^[0-9a-f]{16}$/);
    assert.deepEqual((await engine.probe(t.signal)).fingerprints, facts.fingerprints);
    assert.deepEqual([facts.token_in, facts.token_in_missing], [true, undefined]);
  });
});

test("two tool calls in one turn come whole, with an id and a logprob for every token, forced ones 0", async (t) => {
  if (!(await need(t, "vllm"))) return;
  await withVllm(t.signal, async (engine, vllm) => {
    const call = (command: string) => `<tool_call>\n{"name": "bash", "arguments": {"command":  "${command}"}}\n</tool_call>`;
    // With a seed, for the mark of a call can also be spelled in other tokens, and then it is none to the server.
    const sampling = { ...neutral, seed: 0, max_tokens: 256, structured_outputs: { choice: [`${call("ls")}\n${call("pwd")}`] } };
    const { calls, ids, logprobs, end } = read(await Array.fromAsync(engine.sample(request(vllm, { tools: [tool], sampling }), t.signal)));
    assert.deepEqual(
      calls.map(({ name, arguments: text }) => [name, text]),
      [
        ["bash", '{"command":  "ls"}'],
        ["bash", '{"command":  "pwd"}'],
      ],
    );
    assert.equal(end.finish_reason, "tool_calls");
    assert.deepEqual([ids.length, logprobs.length], [end.usage.sampled_tokens, end.usage.sampled_tokens]);
    assert.ok(logprobs.every((logprob) => logprob !== null && logprob <= 0) && logprobs.some((logprob) => logprob === 0));
  });
});

test("vLLM's refusals are typed, and one of them does not cost the next call", async (t) => {
  if (!(await need(t, "vllm"))) return;
  await withVllm(t.signal, async (engine, vllm) => {
    const long = [{ role: "user" as const, parts: [{ type: "text" as const, text: "sea ".repeat(60_000) }] }];
    const refused: [Partial<SampleRequest>, string][] = [
      [{ messages: long }, "context_length_exceeded"],
      [{ model: "absent" }, "model_unknown"],
      [{ sampling: { temperature: -1 } }, "request_invalid"],
      [{ sampling: { structured_outputs: { regex: "(" } } }, "request_invalid"],
    ];
    for (const [fields, code] of refused) {
      const error = await Array.fromAsync(engine.sample(request(vllm, fields), t.signal)).then(
        () => null,
        (thrown: unknown) => thrown,
      );
      assert.ok(error instanceof AlidadeError, `${code}: ${error}`);
      assert.equal(error.code, code, error.message);
    }
    const { end } = read(
      await Array.fromAsync(engine.sample(request(vllm, { sampling: { ...neutral, max_tokens: 3, ignore_eos: true } }), t.signal)),
    );
    assert.equal(end.finish_reason, "length");
  });
});

test("the signal stops the generation at vLLM", async (t) => {
  if (!(await need(t, "vllm"))) return;
  await withVllm(t.signal, async (engine, vllm) => {
    const leave = new AbortController();
    const sampling = { ...neutral, max_tokens: 20_000, ignore_eos: true };
    let seen = 0;
    await assert.rejects(async () => {
      for await (const event of engine.sample(request(vllm, { sampling }), leave.signal))
        if (event.type === "tokens" && ++seen === 3) leave.abort(new AlidadeError("cancelled", "enough"));
    });
    const limit = AbortSignal.timeout(60_000);
    // Other test files may share the server, so that only "no more than before" can be said of all; alone it is none.
    while (((await engine.running?.(limit)) ?? 0) > 0) await sleep(50, undefined, { signal: limit });
  });
});

test("many tokens a chunk say what one a chunk says: text, calls, ids and logprobs", async (t) => {
  if (!(await need(t, "vllm"))) return;
  await withVllm(t.signal, async (engine, vllm) => {
    const call = (command: string) => `<tool_call>\n{"name": "bash", "arguments": {"command": "${command}"}}\n</tool_call>`;
    const spoken = [
      "Only words, and a good many of them, so that they come in more than one chunk of many tokens. ".repeat(3),
      `Let me look.\n${call("ls -la")}`,
      `${call("ls")}\n${call(`echo ${"long ".repeat(60)}`)}`,
    ];
    for (const text of spoken) {
      const sampling = { ...neutral, max_tokens: 900, seed: 7, structured_outputs: { choice: [text] } };
      const turn = async (live: boolean) =>
        read(await Array.fromAsync(engine.sample(request(vllm, { tools: [tool], sampling, live }), t.signal)));
      let [one, many] = await Promise.all([turn(true), turn(false)]);
      // A seed gives the same tokens but for what batches of another shape round.
      for (let again = 0; again < 4 && many.ids.join() !== one.ids.join(); again++)
        [one, many] = await Promise.all([turn(true), turn(false)]);
      assert.deepEqual([many.ids, said(many)], [one.ids, said(one)]);
      for (const [at, logprob] of many.logprobs.entries())
        assert.ok(Math.abs((logprob ?? Number.NaN) - (one.logprobs[at] ?? Number.NaN)) <= tolerance, `logprob ${at}`);
      assert.ok(one.ids.length > 20);
    }
  });
});

test("vLLM spells a prompt in its own tokens, a character of several bytes too", async (t) => {
  if (!(await need(t, "vllm"))) return;
  await withVllm(t.signal, (engine, vllm) => assertSpells(engine, vllm.model, t.signal));
});
