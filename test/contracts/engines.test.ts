/**
 * Every engine of the registry against its own wire over real HTTP, with the faults of real servers. vLLM itself is met
 * in test/e2e/vllm-engine.test.ts; SGLang and llama-server are not installed in CI, their wires are scripted in the
 * shape of exchanges with real ones (SGLang 0.5.23, llama-server of 2026).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { contextOverflow } from "../../dialects/context-overflow.ts";
import type { Engine, SampleEvent, SampleRequest } from "../../engines/engine.ts";
import { engineNamed, engines } from "../../engines/index.ts";
import { AlidadeError } from "../../errors.ts";
import type { Message, Prompt } from "../../schema/message.ts";
import { anthropicWire } from "../fakes/scripted-anthropic.ts";
import { encode, endOfTurn, logprobOf, ScriptedEngine, type ScriptedReply, said } from "../fakes/scripted-engine.ts";
import { googleWire } from "../fakes/scripted-google.ts";
import { llamaCppWire } from "../fakes/scripted-llama-cpp.ts";
import { sglangWire } from "../fakes/scripted-sglang.ts";
import { forbidExtras, tensorrtLlmWire } from "../fakes/scripted-tensorrt-llm.ts";
import { ScriptedWire, type Wire } from "../fakes/scripted-wire.ts";

type Scripted = AsyncDisposable & { url: string; aborted: number; requests: readonly Record<string, unknown>[] };
type Case = {
  start: (script: (request: Record<string, unknown>) => ScriptedReply) => Promise<Scripted>;
  /** Gives ids and logprobs. */
  tokens: boolean;
  /** `prompt_ids` are taken. */
  tokenIn?: boolean;
  /** The turn comes piece by piece. */
  streams: boolean;
  /** How this server says that a prompt is too long. */
  overflow: string;
};

const on = (wire: Wire) => (script: (request: Record<string, unknown>) => ScriptedReply) => ScriptedWire.start(wire, script);
const vllmOverflow = "This model's maximum context length is 10 tokens. However, you requested 20 tokens";

const cases: Record<string, Case> = {
  vllm: { start: ScriptedEngine.start, tokens: true, tokenIn: true, streams: true, overflow: vllmOverflow },
  sglang: {
    start: on(sglangWire),
    tokens: true,
    tokenIn: true,
    streams: false,
    overflow: "The input (20 tokens) is longer than the model's context length (10 tokens).",
  },
  "llama-cpp": {
    start: on(llamaCppWire),
    tokens: true,
    streams: false,
    overflow: "the request exceeds the available context size, try increasing it",
  },
  openai: { start: ScriptedEngine.start, tokens: false, streams: true, overflow: vllmOverflow },
  "openai-compatible": { start: ScriptedEngine.start, tokens: false, streams: true, overflow: vllmOverflow },
  anthropic: { start: on(anthropicWire), tokens: false, streams: true, overflow: "prompt is too long: 20 tokens > 10 maximum" },
  google: {
    start: on(googleWire),
    tokens: false,
    streams: true,
    overflow: "The input token count (20) exceeds the maximum number of tokens allowed (10).",
  },
};

const messages: Message[] = [
  { role: "system", parts: [{ type: "text", text: "Be brief." }] },
  { role: "user", parts: [{ type: "text", text: "list the files" }] },
  {
    role: "assistant",
    parts: [
      { type: "text", text: "Looking." },
      { type: "tool_call", id: "callone01", name: "bash", arguments: '{"command":  "ls"}', kind: "function" },
    ],
  },
  {
    role: "tool",
    parts: [{ type: "tool_result", call_id: "callone01", content: [{ type: "text", text: "a.txt" }], is_error: false }],
  },
];

const request = (fields: Partial<SampleRequest> = {}): SampleRequest => ({
  model: "scripted",
  messages,
  tools: [{ name: "bash", parameters: { type: "object", properties: { command: { type: "string" } } }, kind: "function" }],
  tool_choice: null,
  sampling: { temperature: 1, max_tokens: 100 },
  call_id: "call1",
  ...fields,
});

/** Far longer than any of this takes; a hang is a failure of the test and not of the machine. */
const patience = () => AbortSignal.timeout(20_000);

async function withEngine(
  kind: string,
  script: ScriptedReply | ((request: Record<string, unknown>) => ScriptedReply),
  body: (engine: Engine, server: Scripted) => Promise<void>,
): Promise<void> {
  await using server = await cases[kind]!.start(typeof script === "function" ? script : () => script);
  const engine = engineNamed(kind).create({ baseUrl: server.url, apiKey: "key" });
  try {
    await body(engine, server);
  } finally {
    await engine.close();
  }
}

const sampleAll = (engine: Engine, fields: Partial<SampleRequest> = {}): Promise<SampleEvent[]> =>
  Array.fromAsync(engine.sample(request(fields), patience()));

function endOf(events: SampleEvent[]): Extract<SampleEvent, { type: "end" }> {
  const end = events.at(-1);
  assert.ok(end?.type === "end", "the last event is the end");
  return end;
}

function tokensOf(events: SampleEvent[]): { ids: number[]; logprobs: (number | null)[] } {
  const tokens = events.filter((event) => event.type === "tokens");
  return { ids: tokens.flatMap((event) => [...event.token_ids]), logprobs: tokens.flatMap((event) => [...event.logprobs]) };
}

const textOf = (events: SampleEvent[], type: "text-delta" | "reasoning-delta"): string =>
  events.map((event) => (event.type === type ? event.text : "")).join("");

async function failureOf(promise: Promise<unknown>): Promise<AlidadeError> {
  const error = await promise.then(
    () => assert.fail("it did not fail"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof AlidadeError, String(error));
  return error;
}

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
    });
  });

  test(`${kind}: refusals are typed by what they say`, async () => {
    const refusals = [
      [400, overflow, "context_length_exceeded", 400],
      [404, "The model `nobody` does not exist.", "model_unknown", 404],
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

  test(`${kind}: nobody there is engine_unreachable, in the probe too`, async () => {
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

  test(`${kind}: connections that the server closed while idle cost no call`, async () => {
    await withEngine(kind, { text: "fine" }, async (engine, server) => {
      for (let round = 0; round < 3; round++) {
        const outcome = await sampleAll(engine).then(endOf, (error: unknown) => error);
        // Either it was sent on a fresh connection, or it was not seen, which the proxy may try again.
        if (outcome instanceof AlidadeError) assert.equal(outcome.code, "engine_unreachable");
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

test("vllm: a router that strips one of the two lists is told from a server that gives none", async () => {
  await withEngine("vllm", { text: "x", quirk: "router_strips_prompt" }, async (engine) => {
    assert.match((await engine.probe(patience())).missing ?? "", /no prompt ones.*router/s);
  });
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
        const error = await failureOf(sampleAll(engine, { prompt_ids: [7, 8, 9] }));
        // No other prompt is sampled in its place.
        assert.deepEqual([error.code, error.param, server.requests.length], ["request_invalid", "prompt_ids", asked]);
        return;
      }
      const events = await sampleAll(engine, { prompt_ids: [7, 8, 9] });
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

test("a server that leaves prompt ids out, and says nothing, is seen by the probe; one that turns to it later is misaligned", async () => {
  await using server = await ScriptedEngine.start(() => ({ text: "x" }));
  const engine = engineNamed("vllm").create({ baseUrl: server.url, apiKey: null });
  server.takesPromptIds = false;
  const facts = await engine.probe(patience());
  assert.equal(facts.token_in, false);
  assert.match(facts.token_in_missing ?? "", /rendered the messages.*0\.32/);
  server.takesPromptIds = true;
  await engine.probe(patience());
  server.takesPromptIds = false;
  assert.match(endOf(await sampleAll(engine, { prompt_ids: [7, 8, 9] })).misaligned ?? "", /another prompt .* than asked \(3 ids\)/);
  await engine.close();
});

test("vllm: ids that fill the context are refused as a conversation that does, and ids beside an image before they are lost", async () => {
  await withEngine("vllm", { text: "x" }, async (engine, server) => {
    const { max_model_len } = await engine.probe(patience());
    const full = await failureOf(sampleAll(engine, { prompt_ids: new Array<number>(max_model_len ?? 0).fill(7) }));
    assert.deepEqual([full.code, full.status], ["context_length_exceeded", 400]);
    assert.deepEqual(contextOverflow(full.message), { tokens: "100001", maximum: "100000" });
    const image: Message = { role: "user", parts: [{ type: "image", url: "data:image/png;base64,AA==" }] };
    const lost = await failureOf(sampleAll(engine, { messages: [image], prompt_ids: [7] }));
    assert.deepEqual([lost.code, lost.param, server.requests.length], ["request_invalid", "prompt_ids", 0]);
  });
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

test("vllm: a chunk that comes twice cannot be told from two tokens, so the counts must say it", async () => {
  await withEngine("vllm", { text: "ab", quirk: "duplicated_first_chunk" }, async (engine) => {
    const events = await sampleAll(engine);
    assert.equal(tokensOf(events).ids.length, (endOf(events).usage.sampled_tokens ?? 0) + 1);
  });
});

test("vllm: a server that forbids our extra fields is named by the probe, and is text-only after it", async () => {
  await using server = await ScriptedWire.start(tensorrtLlmWire, forbidExtras({ text: "only text" }));
  const engine = engineNamed("vllm").create({ baseUrl: server.url, apiKey: null });
  const facts = await engine.probe(patience());
  assert.deepEqual([facts.token_ids, facts.logprobs], [false, false]);
  assert.match(facts.missing ?? "", /return_token_ids.*Extra inputs are not permitted.*--kind/s);
  const events = await sampleAll(engine);
  assert.deepEqual([textOf(events, "text-delta"), tokensOf(events).ids], ["only text", []]);
  await engine.close();
});

test("sglang: what does not belong together is said, whatever it is, and nothing is made up for it", async () => {
  for (const [quirk, said] of [
    ["one_pair_less", /logprobs and .* response_token_ids/],
    ["other_ids", /logprobs of other ids/],
    ["counts_one_more", /completion tokens and/],
  ] as const)
    await withEngine("sglang", { text: "text", quirk }, async (engine) => {
      assert.match(endOf(await sampleAll(engine)).misaligned ?? "", said, quirk);
    });
  await withEngine("sglang", { text: "text", quirk: "one_minus_9999" }, async (engine) => {
    assert.deepEqual(tokensOf(await sampleAll(engine)).logprobs[0], null);
  });
});

test("sglang: a router that strips ids is named by the probe", async () => {
  for (const quirk of ["router_strips_meta", "router_strips_prompt"] as const)
    await withEngine("sglang", { text: "x", quirk }, async (engine) => {
      assert.match((await engine.probe(patience())).missing ?? "", /router strips.*worker itself/s);
    });
});

test("sglang: logprobs are processed, ids can be given, and the weights that sampled are named", async () => {
  await withEngine("sglang", { text: "text" }, async (engine, server) => {
    const facts = await engine.probe(patience());
    assert.deepEqual(
      [facts.logprob_semantics, facts.grammar_logprobs, facts.token_in, facts.weight_version],
      ["processed", "masked", true, "w7"],
    );
    const events = await sampleAll(engine, { prompt_ids: [5, 6, 7], sampling: { top_k: 0, structured_outputs: { choice: ["a.b", "c"] } } });
    const sent = server.requests.at(-1);
    assert.deepEqual([sent?.input_ids, sent?.top_k, sent?.regex, sent?.stream], [[5, 6, 7], -1, "(a\\.b|c)", false]);
    assert.deepEqual(endOf(events).weights, [
      { version: "w6", start: 0, end: 2 },
      { version: "w7", start: 2, end: null },
    ]);
  });
});

test("sglang: a prompt without a template is text or ids, and its answer is text that no parser has seen", async () => {
  const reply = { text: "plain", tool_calls: [{ name: "bash", arguments: "{}" }] };
  await withEngine("sglang", reply, async (engine, server) => {
    for (const [prompt, ids] of [
      [{ text: "ab" }, [97, 98]],
      [{ token_ids: [7, 8, 9] }, [7, 8, 9]],
    ] as const) {
      const sampling = { max_tokens: 5, seed: 3, top_k: 0, structured_outputs: { json: { type: "object" } } };
      const events = await sampleAll(engine, { prompt: prompt as Prompt, messages: [], tools: [], sampling });
      assert.deepEqual(server.requests.at(-1)?.sampling_params, {
        top_k: -1,
        json_schema: '{"type":"object"}',
        max_new_tokens: 5,
        sampling_seed: 3,
      });
      assert.deepEqual(events.find((event) => event.type === "prompt")?.token_ids, ids);
      assert.deepEqual([textOf(events, "text-delta"), events.some((event) => event.type === "tool-call")], [said(reply), false]);
      assert.deepEqual(
        tokensOf(events).logprobs,
        tokensOf(events).ids.map((id, at) => logprobOf(id, ids.length + at)),
      );
      assert.deepEqual([endOf(events).finish_reason, endOf(events).misaligned], ["stop", undefined]);
    }
  });
});

test("sglang: a caller that leaves is told to the server by name too", async () => {
  await withEngine("sglang", { text: "late", before: new Promise(() => undefined) }, async (engine, server) => {
    const leave = new AbortController();
    const sampled = Array.fromAsync(engine.sample(request({ call_id: "call9" }), leave.signal));
    const limit = patience();
    while (server.requests.length === 0) await sleep(5, undefined, { signal: limit });
    leave.abort(new AlidadeError("cancelled", "enough"));
    await failureOf(sampled);
    const { abortRequests } = server as ScriptedWire;
    while (abortRequests.length === 0) await sleep(5, undefined, { signal: limit });
    assert.deepEqual(abortRequests, [{ rid: "call9" }]);
  });
});

test("llama-cpp: logprobs missing inside characters are null, at exactly those tokens", async () => {
  const text = "aé日a";
  await withEngine("llama-cpp", { text }, async (engine) => {
    const { ids, logprobs } = tokensOf(await sampleAll(engine));
    assert.deepEqual(ids, [...encode(said({ text })), endOfTurn]);
    assert.deepEqual(
      logprobs.map((logprob) => logprob === null),
      [false, true, true, false, false],
    );
  });
});

test("llama-cpp: a prompt that was truncated, or is not what the server counted, is said", async () => {
  for (const [quirk, saying] of [
    ["truncated", /truncated/],
    ["prompt_of_other_length", /prompt tokens and a prompt of/],
    ["other_ids", /logprobs of other ids/],
  ] as const)
    await withEngine("llama-cpp", { text: "text", quirk }, async (engine) => {
      assert.match(endOf(await sampleAll(engine)).misaligned ?? "", saying, quirk);
    });
  await withEngine("llama-cpp", { text: "x", quirk: "router_strips_verbose" }, async (engine) => {
    assert.match((await engine.probe(patience())).missing ?? "", /router/);
  });
});

test("hosted: a parameter that changes what is sampled and has no place is refused by name; one that says nothing is left out", async () => {
  for (const kind of ["openai", "anthropic", "google"])
    await withEngine(kind, { text: "ok" }, async (engine) => {
      const error = await failureOf(sampleAll(engine, { sampling: { structured_outputs: { choice: ["a"] } } }));
      assert.deepEqual([error.code, error.param], ["request_invalid", "structured_outputs"]);
      const neutral = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, presence_penalty: 0, frequency_penalty: 0, repetition_penalty: 1 };
      assert.equal(endOf(await sampleAll(engine, { sampling: { ...neutral, max_tokens: 5 } })).finish_reason, "stop");
    });
});

test("hosted: an image that is in its own URL goes out as bytes, one that is elsewhere as its address", async () => {
  const image = (url: string) => ({ type: "image" as const, url });
  const asked: Message[] = [{ role: "user", parts: [image("data:image/png;base64,AA=="), image("https://example.com/a.png")] }];
  const sentBy = async (kind: string): Promise<string> => {
    let sent = "";
    await withEngine(kind, { text: "ok" }, async (engine, server) => {
      await sampleAll(engine, { messages: asked, tools: [] });
      sent = JSON.stringify(server.requests[0]);
    });
    return sent;
  };
  const anthropic = await sentBy("anthropic");
  assert.ok(anthropic.includes('{"type":"base64","media_type":"image/png","data":"AA=="}'), anthropic);
  assert.ok(anthropic.includes('{"type":"url","url":"https://example.com/a.png"}'), anthropic);
  const google = await sentBy("google");
  assert.match(google, /"inlineData":\{("data":"AA==","mimeType":"image\/png"|"mimeType":"image\/png","data":"AA==")\}/);
  assert.match(google, /"fileUri":"https:\/\/example.com\/a.png"/);
});

test("anthropic: a later system turn is a user's, and arguments that are no object stay the text that they were", async () => {
  await withEngine("anthropic", { text: "ok" }, async (engine, server) => {
    const odd: Message[] = [
      ...messages,
      { role: "assistant", parts: [{ type: "tool_call", id: "odd1", name: "bash", arguments: '{"command": ', kind: "function" }] },
      { role: "tool", parts: [{ type: "tool_result", call_id: "odd1", content: [{ type: "text", text: "bad JSON" }], is_error: true }] },
      { role: "system", parts: [{ type: "text", text: "Hurry." }] },
    ];
    await sampleAll(engine, { messages: odd });
    const sent = server.requests[0] as { system: string; messages: { role: string; content: Record<string, unknown>[] }[] };
    assert.equal(sent.system, "Be brief.");
    assert.deepEqual(
      sent.messages.map(({ role, content }) => [role, content.map((block) => block.type)]),
      [
        ["user", ["text"]],
        ["assistant", ["text", "tool_use"]],
        ["user", ["tool_result"]],
        ["assistant", ["text"]],
        ["user", ["text", "text"]],
      ],
    );
    assert.equal(sent.messages[3]?.content[0]?.text, 'bash({"command": )');
    assert.equal(sent.messages[4]?.content[1]?.text, "Hurry.");
  });
});
