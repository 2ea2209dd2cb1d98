/**
 * Every engine of the registry against its own wire over real HTTP, with the faults of real servers. vLLM itself is met
 * in test/e2e/vllm-engine.test.ts; SGLang and llama-server are not installed in CI, their wires are scripted in the
 * shape of exchanges with real ones (SGLang 0.5.23, llama-server of 2026).
 */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError } from "../../base/errors.ts";
import type { Tool } from "../../base/schema/message.ts";
import { IdText } from "../../base/tokens/id-text.ts";
import type { Engine, SampleEvent } from "../../engines/engine.ts";
import { LostAnswer } from "../../engines/http/refusal.ts";
import { engineNamed, engines } from "../../engines/registry.ts";
import { expertsAt, scriptedExperts } from "../fakes/engines/npy.ts";
import { decode, encode, endOfTurn, logprobOf } from "../fakes/engines/scripted-engine.ts";
import { llamaCppWire } from "../fakes/engines/scripted-llama-cpp.ts";
import { sglangWire } from "../fakes/engines/scripted-sglang.ts";
import { ScriptedWire } from "../fakes/engines/scripted-wire.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cases, endOf, failureOf, messages, patience, request, sampleAll, textOf, tokensOf, withEngine } from "./engine-cases.ts";

test("every engine of the registry has a wire here", () => {
  assert.deepEqual(
    engines.map((kind) => kind.name),
    Object.keys(cases),
  );
});

for (const [kind, { tokens, streams, overflow }] of Object.entries(cases)) {
  test(`${kind}: text, reasoning and parallel tool calls arrive whole and in order`, async () => {
    const reply = {
      text: "Two at once.",
      reasoning: "Both are needed.",
      tool_calls: [
        { name: "bash", arguments: '{"command":"ls"}' },
        { name: "bash", arguments: '{"command":"pwd"}' },
      ],
    };
    await withEngine(kind, reply, async (engine) => {
      const events = await sampleAll(engine);
      assert.deepEqual(events[0], { type: "accepted", status: 200 });
      assert.equal(textOf(events, "text-delta"), reply.text);
      assert.equal(textOf(events, "reasoning-delta"), reply.reasoning);
      const calls = events.filter((event) => event.type === "tool-call");
      assert.deepEqual(
        calls.map((call) => [call.name, call.arguments]),
        reply.tool_calls.map((call) => [call.name, call.arguments]),
      );
      const end = endOf(events);
      assert.equal(end.finish_reason, "tool_calls");
      assert.equal(end.misaligned, undefined);
      assert.ok((end.usage.prompt_tokens ?? 0) > 0 && (end.usage.sampled_tokens ?? 0) > 0);
    });
  });

  test(`${kind}: ${tokens ? "one logprob for each sampled id, at its own place" : "no ids are invented, and the probe says why there are none"}`, async () => {
    await withEngine(kind, { text: "plain words" }, async (engine) => {
      const facts = await engine.probe(patience());
      const events = await sampleAll(engine);
      const { ids, logprobs } = tokensOf(events);
      assert.deepEqual([facts.token_ids, facts.logprobs, facts.missing === null], [tokens, tokens, tokens], facts.missing ?? "");
      assert.equal(engine.tellsTokens === true, tokens);
      assert.deepEqual(facts.models, ["scripted"]);
      if (!tokens) {
        assert.deepEqual([ids, events.filter((event) => event.type === "prompt")], [[], []]);
        assert.match(facts.missing ?? "", /distillation.*vLLM/s);
        return;
      }
      const prompt = events.find((event) => event.type === "prompt")?.token_ids ?? assert.fail("no prompt ids");
      assert.deepEqual([...ids], [...encode("plain words"), endOfTurn]);
      assert.deepEqual(
        logprobs,
        ids.map((id, at) => logprobOf(id, prompt.length + at)),
      );
      assert.equal(endOf(events).usage.prompt_tokens, prompt.length);
      assert.equal(endOf(events).usage.sampled_tokens, ids.length);
      const told = (await sampleAll(engine, { token_logprobs: { top: 1 } })).flatMap((event) =>
        event.type === "tokens" ? (event.tokens ?? []) : [],
      );
      assert.deepEqual(
        told.map(({ id, text, bytes, logprob }) => [id, text, String(Buffer.from(bytes ?? [])), logprob]),
        ids.map((id, at) => [id, decode([id]), decode([id]), logprobs[at]]),
      );
      assert.ok(told.every(({ top }) => top.length === 1));
    });
  });

  test(`${kind}: a tool's schema goes out with its numbers as the harness wrote them`, async () => {
    await withEngine(kind, { text: "ok" }, async (engine, server) => {
      const source = '{"type":"object","properties":{"n":{"minimum":0.0,"maximum":9223372036854775807}}}';
      const tools: Tool[] = [{ name: "f", parameters: JSON.parse(source), parameters_source: source, kind: "function" }];
      await sampleAll(engine, { tools });
      assert.ok(server.bodies[0]?.includes(source), server.bodies[0]);
    });
  });

  test(`${kind}: refusals are typed by what they say`, async () => {
    const refusals = [
      [400, overflow, "context_length_exceeded", 400],
      [404, "The model `absent` does not exist.", "model_unknown", 404],
      [400, "max_tokens must be at least 1", "request_invalid", 400],
      [401, "bad key", "engine_error", 502],
      [429, "slow down", "engine_error", 429],
      [500, "boom", "engine_error", 502],
      [503, "loading", "engine_error", 503],
    ] as const;
    for (const [status, message, code, answered] of refusals)
      await withEngine(kind, { refuse: { status, message } }, async (engine, server) => {
        const error = await failureOf(sampleAll(engine));
        assert.deepEqual([error.code, error.status], [code, answered], `${status} ${message}: ${error.message}`);
        assert.ok(error.message.includes(message), error.message);
        // One request each: a second try is the proxy's to decide and to record.
        assert.equal(server.requests.length, 1);
      });
  });

  test(`${kind}: a full server's word on when to come back is kept`, async () => {
    for (const status of [429, 503])
      await withEngine(kind, { refuse: { status, message: "full", retryAfter: "7" } }, async (engine) => {
        assert.equal((await failureOf(sampleAll(engine))).retryAfterSeconds, 7);
      });
    await withEngine(kind, { refuse: { status: 429, message: "full" } }, async (engine) => {
      assert.equal((await failureOf(sampleAll(engine))).retryAfterSeconds, null);
    });
  });

  test(`${kind}: nothing there is engine_unreachable, in the probe too`, async () => {
    const gone = await cases[kind]!.start(() => ({}));
    await gone[Symbol.asyncDispose]();
    const engine = engineNamed(kind).create({ baseUrl: gone.url, apiKey: "key" });
    assert.equal((await failureOf(sampleAll(engine))).code, "engine_unreachable");
    assert.equal((await failureOf(engine.probe(patience()))).code, "engine_unreachable");
    await engine.close();
  });

  test(`${kind}: the signal ends a request that hangs, here and at the server`, async () => {
    const never = new Promise<void>(() => undefined);
    await withEngine(kind, { text: "late", before: never }, async (engine, server) => {
      const leave = new AbortController();
      const sampled = Array.fromAsync(engine.sample(request(), leave.signal));
      const limit = patience();
      while (server.requests.length === 0) await sleep(5, undefined, { signal: limit });
      leave.abort(new AlidadeError("cancelled", "enough"));
      assert.equal((await failureOf(sampled)).code, "cancelled");
      while (server.aborted === 0) await sleep(5, undefined, { signal: limit });
      assert.equal(server.aborted, 1);
    });
  });

  test(`${kind}: an answer that breaks off is an engine_error, and never an end`, async () => {
    await withEngine(kind, { text: "half a sentence", reasoning: "hm", cutAfter: 1 }, async (engine) => {
      const events: SampleEvent[] = [];
      const error = await failureOf(
        (async () => {
          for await (const event of engine.sample(request(), patience())) events.push(event);
        })(),
      );
      assert.equal(error.code, "engine_error");
      assert.ok(events.every((event) => event.type !== "end"));
      assert.equal(
        events.some((event) => event.type === "accepted"),
        true,
      );
    });
  });

  test(`${kind}: a turn cut by its limit is a length, and not a stop`, async () => {
    await withEngine(kind, { text: "unfin", finish_reason: "length" }, async (engine) => {
      assert.equal(endOf(await sampleAll(engine)).finish_reason, "length");
    });
  });

  test(`${kind}: however many calls run at once, each is at the server at once`, async () => {
    const all = Promise.withResolvers<void>();
    await withEngine(kind, { text: "fine", before: all.promise }, async (engine, server) => {
      const calls = Array.from({ length: 100 }, (_, index) => sampleAll(engine, { call_id: `call${index}` }));
      const limit = patience();
      while (server.requests.length < calls.length) await sleep(5, undefined, { signal: limit });
      all.resolve();
      for (const events of await Promise.all(calls)) assert.equal(endOf(events).finish_reason, "stop");
    });
  });

  test(`${kind}: on connections that the server closed while idle a call is answered, not seen, or told as perhaps seen`, async () => {
    await withEngine(kind, { text: "fine" }, async (engine, server) => {
      for (let round = 0; round < 3; round++) {
        const outcome = await sampleAll(engine).then(endOf, (error: unknown) => error);
        // It was sent on a fresh connection, or it was not seen, which the proxy may try again, or its bytes had left by then.
        if (outcome instanceof LostAnswer) assert.match(outcome.message, /closed the connection without an answer/);
        else if (outcome instanceof AlidadeError) assert.equal(outcome.code, "engine_unreachable");
        else assert.equal((outcome as { finish_reason: string }).finish_reason, "stop");
        if (server instanceof ScriptedWire) server.server.closeIdleConnections();
      }
    });
  });

  if (streams)
    test(`${kind}: leaving the stream early ends it at the server`, async () => {
      const never = new Promise<void>(() => undefined);
      await withEngine(kind, { text: "on and on", beforeEnd: never }, async (engine, server) => {
        for await (const event of engine.sample(request(), patience())) if (event.type === "text-delta") break;
        const limit = patience();
        while (server.aborted === 0) await sleep(5, undefined, { signal: limit });
      });
    });
}

for (const [kind, wire] of Object.entries({ sglang: sglangWire, "llama-cpp": llamaCppWire }))
  test(`${kind}: the call after a 500 is not lost with the connection that the server dropped`, async () => {
    await using server = await ScriptedWire.start(wire, () =>
      server.requests.length === 1 ? { refuse: { status: 500, message: "boom" } } : { text: "fine" },
    );
    server.dropsAfterRefusal = true;
    const engine = engineNamed(kind).create({ baseUrl: server.url, apiKey: null });
    assert.equal((await failureOf(sampleAll(engine))).status, 502);
    const outcome = await sampleAll(engine).then(endOf, (error: unknown) => error);
    if (outcome instanceof AlidadeError) assert.equal(outcome.code, "engine_unreachable");
    else assert.equal((outcome as { finish_reason: string }).finish_reason, "stop");
    await engine.close();
  });

for (const [kind, { tokenIn = false }] of Object.entries(cases))
  test(`${kind}: ${tokenIn ? "prompt ids are sampled on as they are, and the answer is read as ever" : "prompt ids are refused, with the reason in the probe's facts"}`, async () => {
    const reply = { text: "Two.", reasoning: "Hm.", tool_calls: [{ name: "bash", arguments: '{"command":  "ls"}' }] };
    await withEngine(kind, reply, async (engine, server) => {
      const facts = await engine.probe(patience());
      assert.equal(facts.token_in, tokenIn);
      assert.equal(facts.token_in_missing === undefined, tokenIn, "a server without token-in says why, and no other does");
      if (!tokenIn) {
        const asked = server.requests.length;
        const error = await failureOf(sampleAll(engine, { prompt_ids: IdText.of([7, 8, 9]) }));
        // No other prompt is sampled in its place.
        assert.deepEqual([error.code, error.param, server.requests.length], ["request_invalid", "prompt_ids", asked]);
        return;
      }
      const events = await sampleAll(engine, { prompt_ids: IdText.of([7, 8, 9]) });
      assert.deepEqual(events.find((event) => event.type === "prompt")?.token_ids, [7, 8, 9]);
      assert.deepEqual([textOf(events, "text-delta"), textOf(events, "reasoning-delta")], [reply.text, reply.reasoning]);
      const calls = events.filter((event) => event.type === "tool-call").map(({ name, arguments: text }) => ({ name, arguments: text }));
      assert.deepEqual(calls, reply.tool_calls);
      const { ids, logprobs } = tokensOf(events);
      assert.deepEqual(
        logprobs,
        ids.map((id, at) => logprobOf(id, 3 + at)),
      );
      const end = endOf(events);
      assert.deepEqual([end.finish_reason, end.usage.prompt_tokens, end.misaligned], ["tool_calls", 3, undefined]);
    });
  });

for (const kind of Object.keys(cases).filter((each) => cases[each]?.tokenIn))
  test(`${kind}: a conversation is rendered with and without the generation prompt, and its text encodes to its ids`, async () => {
    await withEngine(kind, { text: "x" }, async (engine) => {
      const render = engine.render?.bind(engine) ?? assert.fail("it takes prompt ids and renders none");
      const { tools } = request();
      const open = await render("scripted", { messages, tools, generation: true }, patience());
      const closed = await render("scripted", { messages, tools, generation: false }, patience());
      assert.ok(open.text.startsWith(closed.text) && open.text.length > closed.text.length);
      assert.deepEqual(open.token_ids.slice(0, closed.token_ids.length), closed.token_ids);
      assert.deepEqual(await engine.tokenize?.("scripted", { text: open.text }, patience()), open.token_ids);
      const prompt = (await sampleAll(engine)).find((event) => event.type === "prompt")?.token_ids;
      assert.deepEqual(open.token_ids, prompt, "it is what chat renders");
    });
  });

/** The shape of the scripted model. */
const routedModel = scratchFolder("engines-routed");
before(() => {
  const { experts, layers, top_k } = scriptedExperts;
  const config = { num_experts: experts, num_hidden_layers: layers, num_experts_per_tok: top_k };
  return writeFile(join(routedModel, "config.json"), JSON.stringify(config));
});

for (const [kind, { startRouted }] of Object.entries(cases))
  if (startRouted)
    test(`${kind}: every token of prompt and sample but the last has its experts, from the asked token on`, async () => {
      const body = async (engine: Engine): Promise<void> => {
        const { routing, experts } = await engine.probe(patience());
        assert.deepEqual([routing !== undefined, experts], [true, scriptedExperts.experts]);
        for (const routing_start of [undefined, 3]) {
          const events = await sampleAll(engine, { routing_start });
          const prompt = events.find((event) => event.type === "prompt")?.token_ids ?? [];
          const ids = [...prompt, ...tokensOf(events).ids];
          const told = events.find((event) => event.type === "routing")?.routing;
          assert.ok(told);
          const { bytes, ...shape } = told;
          const { layers, top_k } = scriptedExperts;
          const start = routing_start ?? 0;
          assert.deepEqual(shape, { start, rows: ids.length - 1 - start, layers, top_k, dtype: "uint8" });
          assert.deepEqual([...bytes], ids.map(expertsAt).slice(start, -1).flat(2));
        }
      };
      await withEngine(kind, { text: "two words" }, body, (script) => startRouted(routedModel, script));
    });

test("a stop string is told from the end of a turn", async () => {
  for (const kind of ["vllm", "sglang", "llama-cpp", "anthropic"])
    await withEngine(kind, { text: "one", stop_reason: "\n\n" }, async (engine) => {
      const { finish_reason, stop } = endOf(await sampleAll(engine, { sampling: { stop: ["\n\n"], max_tokens: 50 } }));
      assert.deepEqual([finish_reason, stop], ["stop", "\n\n"], kind);
    });
});

test("an aborted generation that answers 200 keeps its partial ids and ends as an abort", async () => {
  for (const kind of ["vllm", "sglang"])
    await withEngine(kind, { text: "part", quirk: "abort" }, async (engine) => {
      const events = await sampleAll(engine);
      assert.equal(endOf(events).finish_reason, "abort", kind);
      assert.ok(tokensOf(events).ids.length > 0);
    });
});

test("a server that gives every logprob and no top_logprobs can be trained on; what its logprobs are is unknown", async () => {
  for (const kind of ["vllm", "sglang", "llama-cpp"])
    await withEngine(kind, { text: "plain words", quirk: "no_top_logprobs" }, async (engine) => {
      const facts = await engine.probe(patience());
      assert.deepEqual([facts.logprobs, facts.missing, facts.logprob_semantics], [true, null, null], kind);
      assert.ok(tokensOf(await sampleAll(engine)).logprobs.every((logprob) => typeof logprob === "number"));
    });
});
