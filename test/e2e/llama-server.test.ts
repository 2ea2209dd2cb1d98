/**
 * The llama-cpp engine against llama.cpp's own server, over the weights that vLLM serves in the other tests. What it
 * samples is scored again by llama.cpp as a library: the same arithmetic, by another way through the model.
 */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { AlidadeError } from "../../base/errors.ts";
import type { Engine, SampleRequest } from "../../engines/engine.ts";
import { openGguf } from "../../engines/gguf-scorer.ts";
import { engineNamed } from "../../engines/registry.ts";
import { auditTrajectory } from "../../reconstruct/index.ts";
import { llamaCppPlace } from "../interop/llama-cpp/place.ts";
import { type LlamaServer, startLlamaServer } from "../interop/llama-server/start.ts";
import { need } from "../needs.ts";
import { playUntil } from "./play-by-itself.ts";
import { assertSpells, bashTool, neutral, type ReadTurn, read, request } from "./vllm-samples.ts";

/** f32 on both sides; what is left is the order of sums, and it grows with the context. */
const tolerance = 3e-4;

async function withServer(t: TestContext, body: (engine: Engine, model: string, server: LlamaServer) => Promise<void>): Promise<void> {
  if (!(await need(t, "llama-server"))) return;
  await using server = await startLlamaServer(t.signal);
  const engine = engineNamed("llama-cpp").create({ baseUrl: server.url, apiKey: null });
  try {
    const { models } = await engine.probe(t.signal);
    await body(engine, models[0] ?? assert.fail("it serves no model"), server);
  } finally {
    await engine.close();
  }
}

async function sample(engine: Engine, model: string, fields: Partial<SampleRequest>, signal: AbortSignal): Promise<ReadTurn> {
  const asked = request({ model }, fields);
  return read(await Array.fromAsync(engine.sample(asked, signal)));
}

test("the probe finds at llama-server what training needs, and that it takes no prompt ids", async (t) => {
  await withServer(t, async (engine) => {
    const facts = await engine.probe(t.signal);
    assert.deepEqual(
      [facts.token_ids, facts.logprobs, facts.logprob_semantics, facts.grammar_logprobs, facts.token_in, facts.missing],
      [true, true, "raw", "unmasked", false, null],
    );
    assert.ok((facts.max_model_len ?? 0) > 0 && facts.fingerprints?.template && facts.fingerprints.tokenizer);
  });
});

test("llama-server spells a prompt in its own tokens, a character of several bytes too", async (t) => {
  await withServer(t, async (engine, model) => {
    await assertSpells(engine, model, t.signal);
  });
});

test("what llama-server samples freely has the logprobs that the weights give it; where it gives none there is null", async (t) => {
  if (!(await need(t, "llama-cpp"))) return;
  await withServer(t, async (engine, model, server) => {
    await using scorer = await openGguf(server.gguf, llamaCppPlace());
    let worst = 0;
    let measured = 0;
    let unreadable = 0;
    for (let turn = 0; turn < 12; turn++) {
      const asked = sample(engine, model, { tools: turn % 2 === 0 ? [] : [bashTool] }, t.signal);
      const turnRead = await (turn % 2 === 0 ? asked : asked.catch(unlessUnreadable));
      if (turnRead === null) {
        unreadable++;
        continue;
      }
      const { prompt, ids, logprobs, end } = turnRead;
      assert.deepEqual([ids.length > 0, logprobs.length, end.usage.sampled_tokens], [true, ids.length, ids.length]);
      assert.equal(end.misaligned, undefined);
      const scored = await scorer.score([...prompt, ...ids]);
      for (const [at, logprob] of logprobs.entries()) {
        if (logprob === null) continue;
        measured++;
        worst = Math.max(worst, Math.abs(logprob - (scored[prompt.length + at] ?? Number.NaN)));
      }
    }
    t.diagnostic(`${measured} tokens, worst |Δ| ${worst.toExponential(2)} nats; ${unreadable} turns that the server could not read`);
    assert.ok(measured > 100 && worst <= tolerance, `${measured} tokens, ${worst}`);
  });
});

/** Beside tools the server fails what its own parser cannot read, and what was sampled is lost: it says so, and nothing is made up. */
function unlessUnreadable(error: unknown): null {
  assert.ok(error instanceof AlidadeError, String(error));
  assert.deepEqual([error.code, /does not match the expected .* format/.test(error.message)], ["engine_error", true], error.message);
  return null;
}

test("llama-server's refusals are typed: a prompt that is too long, a grammar that does not compile", async (t) => {
  await withServer(t, async (engine, model) => {
    const long = { role: "user" as const, parts: [{ type: "text" as const, text: "word ".repeat(40_000) }] };
    for (const [fields, code] of [
      [{ messages: [long] }, "context_length_exceeded"],
      [{ sampling: { ...neutral, max_tokens: 8, structured_outputs: { grammar: 'root ::= "' } } }, "request_invalid"],
    ] as const) {
      const error = await sample(engine, model, fields as Partial<SampleRequest>, t.signal).catch((thrown: unknown) => thrown);
      assert.ok(error instanceof AlidadeError, `${code}: ${JSON.stringify(error)}`);
      assert.equal(error.code, code, error.message);
    }
    assert.ok((await sample(engine, model, {}, t.signal)).ids.length > 0, "and it goes on");
  });
});

test("a session of the real Pi at llama-server: every token that is trained has the logprob that the weights give it", async (t) => {
  if (!(await need(t, "llama-cpp"))) return;
  await withServer(t, async (_engine, model, server) => {
    const options = { harness: "pi", engine: "llama-cpp", vllm: { url: server.url, model }, turns: 4 } as const;
    // This server fails a turn whose call it cannot read, and Pi then ends: something must have been sampled.
    const played = await playUntil(t, options, ({ fidelity }) => fidelity.sampled_tokens > 0);
    if (played === null) return;
    const { trajectory, unseen } = played;
    assert.deepEqual(unseen, []);
    assert.ok(trajectory.calls.length > 0 && trajectory.calls.every(({ missing }) => !missing?.startsWith("misaligned")));
    await using scorer = await openGguf(server.gguf, llamaCppPlace());
    const { calls, compared, worst } = await auditTrajectory(trajectory, scorer.score, { tolerance });
    assert.deepEqual(
      calls.filter(({ status }) => status === "mismatch"),
      [],
    );
    t.diagnostic(
      `${trajectory.calls.length} calls, ${compared} of ${trajectory.fidelity.sampled_tokens} tokens compared, worst |Δ| ${worst} nats`,
    );
    assert.ok(compared > 0);
  });
});
