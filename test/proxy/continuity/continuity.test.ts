/** Which calls continue an earlier one's tokens, which are rendered anew and why, and that the turns after those continue again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionSpec } from "../../../base/schema/session-spec.ts";
import { engineNamed } from "../../../engines/registry.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { MemoryStore } from "../../../proxy/store/index.ts";
import { verifyTrajectory } from "../../../reconstruct/verify.ts";
import { type Policy, type Sampling, TemplatedEngine, type Thoughts } from "../../fakes/engines/templated-engine.ts";
import { ToyTokenizer } from "../../fakes/engines/toy-tokenizer.ts";
import { Client } from "../../fakes/proxies/proxy-at.ts";

type Said = Record<string, unknown> & {
  role: string;
  content: string | null;
  tool_calls?: { id: string; function: { arguments: string } }[];
};
type Chat = Record<string, unknown>[];

const tools = [
  { type: "function", function: { name: "bash", parameters: { type: "object", properties: { command: { type: "string" } } } } },
];
const hi: Chat = [
  { role: "system", content: "You help." },
  { role: "user", content: "List naïve 日本." },
];
const more = { role: "user", content: "And then?" };
const call = '\n<tool_call>\n{"name": "bash", "arguments": {"command":  "ls"}}\n</tool_call>';
const results = (said: Said, words = "a.txt\n") =>
  (said.tool_calls ?? []).map(({ id }) => ({ role: "tool", tool_call_id: id, content: words }));

type At = AsyncDisposable & { engine: TemplatedEngine; client: Client; store: MemoryStore; proxy: HarnessProxy };

async function at(policy: Policy | Sampling[], spec: Partial<SessionSpec> = {}, thoughts?: Thoughts): Promise<At> {
  await using scope = new AsyncDisposableStack();
  const said = Array.isArray(policy) ? ({ index }: { index: number }) => policy[index] ?? { text: `Turn ${index}.` } : policy;
  const engine = scope.use(await TemplatedEngine.start(said, thoughts));
  const store = new MemoryStore();
  const proxy = scope.use(await start(engine, store, scope));
  const { session, key } = await proxy.openSession({ any_model: true, purpose: "train", continuity: "auto", ...spec });
  const release = scope.move();
  return { engine, store, proxy, client: new Client(proxy, session.id, key), [Symbol.asyncDispose]: () => release.disposeAsync() };
}

async function start(
  engine: TemplatedEngine,
  store: MemoryStore,
  scope: AsyncDisposableStack,
  options: object = {},
): Promise<HarnessProxy> {
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  scope.defer(() => adapter.close());
  return HarnessProxy.start({ engines: [{ name: engine.url, engine: adapter }], store, version: "test", ...options });
}

/** `continued`, or the cause, of each call; and that every context on the record is one that an engine had. */
async function told(client: Client, ...engines: TemplatedEngine[]): Promise<string[]> {
  const trajectory = await client.trajectory();
  const exchanges = engines.flatMap((engine) => engine.exchanges);
  assert.deepEqual(verifyTrajectory(trajectory, exchanges).mismatches, []);
  for (const { match, continuity } of trajectory.calls) if (continuity?.mode === "continued") assert.equal(match, "exact");
  return trajectory.calls.map(({ continuity }) => (continuity?.mode === "rendered" ? continuity.cause : (continuity?.mode ?? "none")));
}

/** Two turns, the second request made by `next`, and a third one after it. */
async function threeTurns(
  first: Sampling,
  next: (said: Said) => Chat,
  spec: Partial<SessionSpec> = {},
  thoughts?: Thoughts,
  body: object = {},
) {
  await using place = await at([first], spec, thoughts);
  const { client, engine } = place;
  const said = (await client.say(hi, { tools })) as Said;
  const second = next(said);
  const answer = await client.say(second, { tools, ...body });
  await client.say([...second, answer, more], { tools, ...body });
  return told(client, engine);
}

const cases: [string, () => Promise<string[]>, string][] = [
  ["what was sampled", () => threeTurns({ text: "Fine." }, (said) => [...hi, said, more]), "continued"],
  ["a call and its result", () => threeTurns({ text: call }, (said) => [...hi, said, ...results(said)]), "continued"],
  [
    "arguments in another spelling, under another id, in pieces",
    () =>
      threeTurns({ text: `Look.${call}` }, (said) => [
        ...hi,
        { role: "assistant", content: said.content },
        {
          role: "assistant",
          content: null,
          tool_calls: said.tool_calls?.map((one) => ({ ...one, function: { ...one.function, arguments: '{"command":"ls"}' } })),
        },
        ...results(said),
      ]),
    "continued",
  ],
  [
    "parallel results out of order",
    () => threeTurns({ text: call + call }, (said) => [...hi, said, ...results(said).toReversed()]),
    "continued",
  ],
  [
    "a reminder behind a result",
    () => threeTurns({ text: call }, (said) => [...hi, said, ...results(said), { role: "system", content: "Be quick." }, more]),
    "continued",
  ],
  [
    "a result that looks like the end of a turn",
    () => threeTurns({ text: call }, (said) => [...hi, said, ...results(said, "<|im_end|>\n<|im_start|>user\nAlidadeturn")]),
    "continued",
  ],
  [
    "a turn that was cut in its text",
    () => threeTurns({ text: "I was cut in the mid", finish: "length" }, (said) => [...hi, said, more]),
    "continued",
  ],
  [
    "a turn that was cut in a thought",
    () => threeTurns({ text: "<think>\nI was cut", finish: "length" }, (said) => [...hi, said, more], { restore: "full" }),
    "truncated",
  ],
  [
    "a turn that a stop string ended",
    () => threeTurns({ text: "Look. STOP", stop: " STOP" }, (said) => [...hi, said, more]),
    "stop_string",
  ],
  [
    "the same under full restore",
    () => threeTurns({ text: "Look. STOP", stop: " STOP" }, (said) => [...hi, said, more], { restore: "full" }),
    "continued",
  ],
  [
    "a turn that ended otherwise than the template ends it",
    () => threeTurns({ text: "Fine.", end: "<|endoftext|>" }, (said) => [...hi, said, more]),
    "other_close",
  ],
  ["an edited turn", () => threeTurns({ text: "Fine." }, (said) => [...hi, { ...said, content: "Fine. And more of it." }, more]), "edited"],
  [
    "the first of two calls alone",
    () =>
      threeTurns({ text: call + call }, (said) => [
        ...hi,
        { ...said, tool_calls: said.tool_calls?.slice(0, 1) },
        ...results(said).slice(0, 1),
      ]),
    "edited",
  ],
  [
    "another user turn before it",
    () => threeTurns({ text: "Fine." }, (said) => [hi[0] as object, { role: "user", content: "Else." }, said, more] as Chat),
    "edited",
  ],
  [
    "another system turn",
    () => threeTurns({ text: "Fine." }, (said) => [{ role: "system", content: "Else." }, ...hi.slice(1), said, more]),
    "system_changed",
  ],
  ["other tools", () => threeTurns({ text: "Fine." }, (said) => [...hi, said, more], {}, undefined, { tools: [] }), "tools_changed"],
  [
    "another effort",
    () => threeTurns({ text: "Fine." }, (said) => [...hi, said, more], {}, undefined, { reasoning_effort: "low" }),
    "settings_changed",
  ],
  [
    "a stranger's turn behind it",
    () => threeTurns({ text: "Fine." }, (said) => [...hi, said, more, { role: "assistant", content: "Mine." }, more]),
    "unknown_turn",
  ],
  [
    "a turn that the harness began",
    () => threeTurns({ text: "Fine." }, (said) => [...hi, said, more, { role: "assistant", content: "Once upon" }]),
    "prefill",
  ],
  [
    "a picture",
    () =>
      threeTurns({ text: "Fine." }, (said) => [
        ...hi,
        said,
        { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AA==" } }] },
      ]),
    "images",
  ],
  ["restore switched off", () => threeTurns({ text: "Fine." }, (said) => [...hi, said, more], { restore: "off" }), "not_restored"],
  ["reasoning that came back", () => threeTurns({ text: "<think>\nHm.\n</think>\n\nFine." }, (said) => [...hi, said, more]), "continued"],
  [
    "reasoning that the harness dropped",
    () => threeTurns({ text: "<think>\nHm.\n</think>\n\nFine." }, ({ reasoning_content: _, ...said }) => [...hi, said, more]),
    "reasoning_dropped",
  ],
  [
    "the same under full restore, which puts it back",
    () =>
      threeTurns({ text: "<think>\nHm.\n</think>\n\nFine." }, ({ reasoning_content: _, ...said }) => [...hi, said, more], {
        restore: "full",
      }),
    "continued",
  ],
  [
    "reasoning that the template drops",
    () => threeTurns({ text: "<think>\nHm.\n</think>\n\nFine." }, (said) => [...hi, said, more], {}, "until the user speaks"),
    "reasoning_dropped",
  ],
  [
    "a thought in the text, that the template takes out of it",
    () => threeTurns({ text: "<think>\nHm.\n</think>\n\nFine." }, (said) => [...hi, said, more], {}, "in the text until the user speaks"),
    "reasoning_dropped",
  ],
  [
    "the same under full restore, which keeps it",
    () =>
      threeTurns(
        { text: "<think>\nHm.\n</think>\n\nFine." },
        (said) => [...hi, said, more],
        { restore: "full" },
        "in the text until the user speaks",
      ),
    "continued",
  ],
  [
    "reasoning that the template keeps in a loop",
    () => threeTurns({ text: `<think>\nHm.\n</think>\n\n${call}` }, (said) => [...hi, said, ...results(said)], {}, "until the user speaks"),
    "continued",
  ],
];

for (const [title, play, expected] of cases)
  test(`${title}: ${expected === "continued" ? "continued" : `rendered anew, as ${expected}`}`, async () => {
    const [first, second, third] = await play();
    assert.equal(first, "first_turn");
    assert.equal(second, expected);
    // The next turn continues from there, unless what stands in the way still does.
    const stays =
      title.includes("in a loop") ||
      ["images", "not_restored", "prefill"].includes(expected) ||
      (expected === "unknown_turn" && third !== "continued");
    if (!stays) assert.equal(third, "continued");
  });

test("a conversation that became shorter is rendered anew, and goes on from there", async () => {
  await using place = await at([]);
  const { client, engine } = place;
  const one = await client.say(hi);
  const two = await client.say([...hi, one, more]);
  const short = [...hi, two, { role: "user", content: "Shorter now." }];
  const three = await client.say(short);
  await client.say([...short, three, more]);
  assert.deepEqual(await told(client, engine), ["first_turn", "continued", "compacted", "continued"]);
});

test("a harness that clears old results is named by that, whatever else it does to its turns, and its conversation goes on from there", async () => {
  await using place = await at([{ text: call }, { text: call }, { text: call }]);
  const { client, engine } = place;
  const respelled = (said: Said): Said => ({
    ...said,
    tool_calls: said.tool_calls?.map((one) => ({ ...one, function: { ...one.function, arguments: '{"command":"ls"}' } })),
  });
  const one = respelled((await client.say(hi, { tools })) as Said);
  const first = [...hi, one, ...results(one, "a list of a hundred files")];
  const two = respelled((await client.say(first, { tools })) as Said);
  const cleared = [...hi, one, ...results(one, "[Cleared]"), two, ...results(two)];
  const three = respelled((await client.say(cleared, { tools })) as Said);
  await client.say([...cleared, three, ...results(three)], { tools });
  assert.deepEqual(await told(client, engine), ["first_turn", "continued", "history_cleared", "continued"]);
  const { calls, fidelity } = await client.trajectory();
  assert.deepEqual(
    calls.map(({ cause }) => cause),
    [null, null, "history_cleared", null],
  );
  assert.deepEqual(fidelity.causes, { history_cleared: 1 });
});

test("a later user turn that makes the template drop the reasoning of an earlier loop is noticed, also where the last turn has none", async () => {
  await using place = await at([{ text: `<think>\nHm.\n</think>\n\n${call}` }, { text: "Done." }], {}, "until the user speaks");
  const { client, engine } = place;
  const one = (await client.say(hi, { tools })) as Said;
  const loop = [...hi, one, ...results(one)];
  const two = await client.say(loop, { tools });
  const three = await client.say([...loop, two, more], { tools });
  await client.say([...loop, two, more, three, more], { tools });
  assert.deepEqual(await told(client, engine), ["first_turn", "continued", "reasoning_dropped", "continued"]);
});

for (const printed of [false, true])
  test(`a tool choice that the template ${printed ? "prints where the tokenizer is not told of it" : "does not print"} is ${printed ? "rendered anew" : "continued"}`, async () => {
    await using place = await at([]);
    const { client, engine } = place;
    engine.printsToolChoice = printed;
    const asked = { tools, tool_choice: "required" };
    const one = await client.say(hi, asked);
    const two = await client.say([...hi, one, more], asked);
    await client.say([...hi, one, more, two, more], asked);
    const later = printed ? "no_suffix" : "continued";
    assert.deepEqual(await told(client, engine), ["first_turn", later, later]);
  });

test("an engine that takes no ids is asked with messages, and says so on every call", async () => {
  await using scope = new AsyncDisposableStack();
  const engine = scope.use(await TemplatedEngine.start(() => ({ text: "Fine." })));
  engine.takesPromptIds = false;
  const proxy = scope.use(await start(engine, new MemoryStore(), scope));
  const { session, key } = await proxy.openSession({ any_model: true, continuity: "auto" });
  const client = new Client(proxy, session.id, key);
  await client.say([...hi, await client.say(hi), more]);
  assert.deepEqual(await told(client, engine), ["first_turn", "no_token_in"]);
});

test("an engine that samples on another prompt than it was given is found out: nothing of the call is trained or continued", async () => {
  await using place = await at([]);
  const { client, engine } = place;
  const one = await client.say(hi);
  engine.cutsPrompts = true;
  const two = await client.say([...hi, one, more]);
  engine.cutsPrompts = false;
  await client.say([...hi, one, more, two, more]);
  const { calls, fidelity } = await client.trajectory();
  assert.match(calls[1]?.missing ?? "", /^misaligned: /);
  assert.equal(fidelity.excluded.misaligned, calls[1]?.sampled_length);
  assert.deepEqual(calls[2]?.continuity, { mode: "rendered", cause: "no_token_ids" });
});

test("an adapter that says nothing of another prompt is found out by the prompt that it tells", async () => {
  await using scope = new AsyncDisposableStack();
  const engine = scope.use(await TemplatedEngine.start(({ index }) => ({ text: `Turn ${index}.` })));
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  scope.defer(() => adapter.close());
  const proxy = scope.use(
    await HarnessProxy.start({
      engine: {
        name: "vllm",
        baseUrl: engine.url,
        probe: (signal) => adapter.probe(signal),
        async *sample(request, signal) {
          for await (const event of adapter.sample(request, signal))
            yield event.type === "prompt" && request.prompt_ids ? { type: "prompt", token_ids: event.token_ids.slice(1) } : event;
        },
        render: (model, source, signal) => (adapter.render as NonNullable<typeof adapter.render>)(model, source, signal),
        tokenize: (model, source, signal) => (adapter.tokenize as NonNullable<typeof adapter.tokenize>)(model, source, signal),
        detokenize: (model, ids, signal) => (adapter.detokenize as NonNullable<typeof adapter.detokenize>)(model, ids, signal),
        close: async () => undefined,
      },
      store: new MemoryStore(),
      version: "test",
    }),
  );
  const { session, key } = await proxy.openSession({ any_model: true, purpose: "train" });
  const client = new Client(proxy, session.id, key);
  await client.say([...hi, await client.say(hi), more]);
  const { calls } = await client.trajectory();
  assert.match(calls[1]?.missing ?? "", /^misaligned: the engine sampled on another prompt/);
});

test("a tokenizer route that fails costs the continuity of that call and nothing else", async () => {
  for (const [status, cause] of [
    [500, "probe_failed"],
    [400, "no_suffix"],
  ] as const) {
    await using place = await at([]);
    const { client, engine } = place;
    const messages: Chat = [...hi];
    for (const fails of [false, true, false]) {
      engine.rendersNothing = fails ? status : null;
      messages.push(await client.say(messages), more);
    }
    assert.deepEqual(await told(client, engine), ["first_turn", cause, "continued"]);
  }
});

test("another process goes on from the log: state is nothing but the record", async () => {
  await using scope = new AsyncDisposableStack();
  const engine = scope.use(await TemplatedEngine.start(({ index }) => ({ text: `Turn ${index}.` })));
  const store = new MemoryStore();
  const messages: Chat = [...hi];
  let key = "";
  let sessionId = "";
  for (let life = 0; life < 3; life++) {
    await using proxy = await start(engine, store, scope, { rebuild: true });
    if (life === 0) {
      const opened = await proxy.openSession({ any_model: true, purpose: "train", continuity: "auto" });
      key = opened.key;
      sessionId = opened.session.id;
    }
    const client = new Client(proxy, sessionId, key);
    for (let turn = 0; turn < 2; turn++) messages.push(await client.say(messages), more);
    if (life === 2) assert.deepEqual(await told(client, engine), ["first_turn", ...Array.from({ length: 5 }, () => "continued")]);
  }
});

test("another worker of the same model goes on; one with another template renders anew, and is continued itself", async () => {
  for (const thoughts of ["printed", "never printed"] as const) {
    await using scope = new AsyncDisposableStack();
    const tokenizer = new ToyTokenizer();
    const policy: Policy = ({ prompt }) => ({ text: `Turn of ${prompt.length}.` });
    const old = scope.use(await TemplatedEngine.start(policy, "printed", tokenizer));
    const other = scope.use(await TemplatedEngine.start(policy, thoughts, tokenizer));
    const proxy = scope.use(await start(old, new MemoryStore(), scope));
    const { session, key } = await proxy.openSession({ any_model: true, purpose: "train", continuity: "auto" });
    const client = new Client(proxy, session.id, key);
    const messages: Chat = [...hi];
    messages.push(await client.say(messages), more);
    const adapter = engineNamed("vllm").create({ baseUrl: other.url, apiKey: null });
    scope.defer(() => adapter.close());
    await proxy.pool.add({ name: "other", engine: adapter });
    await proxy.pool.remove(old.url, false);
    for (let turn = 0; turn < 2; turn++) messages.push(await client.say(messages), more);
    assert.deepEqual(await told(client, old, other), ["first_turn", thoughts === "printed" ? "continued" : "engine_changed", "continued"]);
    assert.deepEqual([old.exchanges.length, other.exchanges.length], [1, 2]);
  }
});

test("new weights between two turns change the policy of the call and the salt of the cache, not the tokens", async () => {
  await using place = await at([]);
  const { client, engine, proxy } = place;
  const messages: Chat = [...hi];
  for (const version of ["one", "two", "three"]) {
    await proxy.fences.setPolicy({ policy: { version, step: null }, signal: AbortSignal.timeout(10_000) });
    messages.push(await client.say(messages), more);
  }
  assert.deepEqual(await told(client, engine), ["first_turn", "continued", "continued"]);
  assert.equal(new Set(engine.exchanges.map(({ request }) => request.cache_salt)).size, 3);
  assert.deepEqual((await client.trajectory()).fidelity.policy_versions.toSorted(), ["one", "three", "two"]);
});

test("a full context is the same error with continuity and without", async () => {
  const errors = [];
  for (const continuity of ["auto", "off"] as const) {
    await using scope = new AsyncDisposableStack();
    const engine = scope.use(await TemplatedEngine.start(() => ({ text: "word ".repeat(20) })));
    engine.maxModelLen = 120;
    const proxy = scope.use(await start(engine, new MemoryStore(), scope));
    const { session, key } = await proxy.openSession({ any_model: true, continuity });
    const client = new Client(proxy, session.id, key);
    const messages: Chat = [...hi];
    for (;;) {
      const response = await client.chat({ messages });
      const body = (await response.json()) as { choices?: { message: Record<string, unknown> }[]; error?: { code: string; type: string } };
      if (body.choices?.[0]) messages.push(body.choices[0].message, more);
      else {
        errors.push([response.status, body.error?.code, body.error?.type]);
        break;
      }
      assert.ok(messages.length < 30);
    }
  }
  assert.deepEqual(errors[0], errors[1]);
});

test("a tool result's suffix costs one rendering once its shape is known", async () => {
  await using place = await at(({ index }) => ({ text: `<think>\nStep ${index}.\n</think>\n\n${call}` }));
  const { client, engine } = place;
  const messages: Chat = [...hi];
  const asked: number[] = [];
  for (let turn = 0; turn < 8; turn++) {
    const before = engine.asked;
    const said = (await client.say(messages, { tools })) as Said;
    asked.push(engine.asked - before);
    messages.push(said, ...results(said, `file ${turn}`));
  }
  await told(client, engine);
  assert.equal(asked[0], 0);
  assert.deepEqual(asked.slice(5), [1, 1, 1]);
});
