/** What harnesses make of our turns on their way back (harnesses.md §1.5): undone where a serialiser did it, labelled where a client edited. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ScriptedReply } from "../../fakes/engines/scripted-engine.ts";
import { type Client, type ProxyAt, proxyAt } from "../../fakes/proxies/proxy-at.ts";

type Said = { role: string; content: string | null; reasoning_content?: string; tool_calls?: ChatCall[] };
type ChatCall = { id: string; type: "function"; function: { name: string; arguments: string } };
type Block = Record<string, unknown> & { type: string; id?: string; text?: string };

const hi = { role: "user", content: "hi" };
const spaced = '{ "path" :  "é\\u00e9",  "n": 1.0 }';
const two: ScriptedReply = {
  text: "Both.",
  tool_calls: [
    { id: "engine-0", name: "read", arguments: spaced },
    { id: "engine-1", name: "list", arguments: "{}" },
  ],
};

/** How the last call's assistant turns were taken: what was restored, and what the engine was asked. */
async function lastOf(at: ProxyAt, client: Client) {
  const { calls } = await client.trajectory();
  const call = calls.at(-1);
  assert.ok(call);
  return {
    match: call.match,
    cause: call.cause,
    restored: call.restored.map(({ status, evidence, differences }) => `${status} ${evidence} ${differences.join()}`),
    messages: at.engine.requests.at(-1)?.messages ?? [],
  };
}

/** One answer, the harness's way of sending it back, and what became of it. */
async function sentBack(reply: ScriptedReply, edit: (said: Said) => unknown[]) {
  await using at = await proxyAt((_, index) => (index === 0 ? reply : { text: "End." }));
  const client = await at.open({ purpose: "train" });
  const said = (await client.say([hi])) as Said;
  await client.say([hi, ...edit(said)]);
  assert.deepEqual(at.unseen, []);
  return lastOf(at, client);
}

const result = (id: string) => ({ role: "tool", tool_call_id: id, content: "ok" });
const callsOf = (said: Said) => said.tool_calls ?? [];
const resultsOf = (said: Said) => callsOf(said).map(({ id }) => result(id));

test("a call of a tool that takes nothing is restored where no arguments come back as an empty object, on every wire", async () => {
  const sampled = { text: "I look.", tool_calls: [{ id: "engine-0", name: "ls", arguments: "" }] };
  const asObject = (said: Said) => callsOf(said).map((call) => ({ ...call, function: { ...call.function, arguments: "{}" } }));
  const chat = await sentBack(sampled, (said) => [{ ...said, tool_calls: asObject(said) }, ...resultsOf(said)]);
  assert.deepEqual([chat.match, chat.restored], ["exact", ["restored tool_call_id arguments"]]);
  assert.equal(chat.messages[1]?.tool_calls?.[0]?.function.arguments, '""');

  await using at = await proxyAt((_, index) => (index % 2 === 0 ? sampled : { text: "End." }));
  const claude = await at.open({ purpose: "train" });
  const message = (messages: unknown[]) => claude.post("/v1/messages", { model: "scripted", max_tokens: 99, messages });
  const { content } = (await (await message([hi])).json()) as { content: Block[] };
  const results = content.flatMap(({ type, id }) => (type === "tool_use" ? [{ type: "tool_result", tool_use_id: id, content: "a" }] : []));
  await message([hi, { role: "assistant", content }, { role: "user", content: results }]);
  assert.deepEqual((await lastOf(at, claude)).restored, ["restored tool_call_id arguments"]);

  // Older clients of Gemini's wire know no ids: such a turn is known by what it says.
  const gemini = await at.open({ purpose: "train" });
  const ask = (contents: unknown[]) => gemini.post("/v1beta/models/scripted:generateContent", { contents });
  const user = (part: object) => ({ role: "user", parts: [part] });
  await ask([user({ text: "hi" })]);
  const model = { role: "model", parts: [{ text: "I look." }, { functionCall: { name: "ls", args: {} } }] };
  await ask([user({ text: "hi" }), model, user({ functionResponse: { name: "ls", response: { output: "a" } } })]);
  assert.deepEqual((await lastOf(at, gemini)).restored, ["restored content arguments,ids"]);
});

test("a turn that comes back in pieces, with its calls in another order, is one turn again", async () => {
  const inPieces = await sentBack(two, (said) => [
    { role: "assistant", content: said.content },
    ...callsOf(said).map((call) => ({ role: "assistant", content: null, tool_calls: [call] })),
    ...resultsOf(said),
  ]);
  assert.deepEqual(inPieces.restored, ["identical tool_call_id "]);
  const reordered = await sentBack(two, (said) => [{ ...said, tool_calls: callsOf(said).toReversed() }, ...resultsOf(said).toReversed()]);
  assert.deepEqual(reordered.restored, ["restored tool_call_id order"]);
  const oneByOne = await sentBack(two, (said) => [
    { role: "assistant", content: said.content },
    ...callsOf(said).flatMap((call) => [{ role: "assistant", content: null, tool_calls: [call] }, result(call.id)]),
  ]);
  assert.deepEqual(oneByOne.restored, ["restored tool_call_id one_by_one"]);
  for (const { match, messages } of [inPieces, reordered, oneByOne]) {
    assert.equal(match, "exact");
    assert.deepEqual(
      messages[1]?.tool_calls?.map((call) => [call.id, call.function.arguments]),
      [
        ["engine-0", spaced],
        ["engine-1", "{}"],
      ],
    );
  }
  // Results stay in the order in which they were sent: which came first is the harness's to say.
  assert.equal((reordered.messages[2] as { tool_call_id?: string }).tool_call_id, "engine-1");
});

test("pieces of two turns side by side are two turns", async () => {
  await using at = await proxyAt((_, index) => ({ text: `Turn ${index}.` }));
  const client = await at.open({ purpose: "train" });
  const first = await client.say([hi]);
  const second = await client.say([hi, first]);
  await client.say([hi, first, second, hi]);
  const { match, restored } = await lastOf(at, client);
  assert.equal(match, "exact");
  assert.deepEqual(restored, ["identical content ", "identical content "]);
});

test("ids that a harness changed, cut or made up are the engine's again, in the calls and in the results", async () => {
  const changes: [string, (id: string) => string, string][] = [
    ["prefixed", (id) => `toolu_${id}`, "identical tool_call_id "],
    ["two in one", (id) => `${id}|fc_${id.slice(0, 24)}i2`, "identical tool_call_id "],
    ["stripped and cut", (id) => `${id}fc${id}`.replace(/[^0-9a-z]/g, "").slice(0, 40), "identical tool_call_id "],
    ["made up", (id) => `call_${id.slice(-1)}`, "restored content ids"],
  ];
  for (const [title, change, label] of changes) {
    const { match, restored, messages } = await sentBack(two, (said) => [
      { ...said, tool_calls: callsOf(said).map((call) => ({ ...call, id: change(call.id) })) },
      ...callsOf(said).map(({ id }) => result(change(id))),
    ]);
    assert.deepEqual(restored, [label], title);
    assert.equal(match, "exact", title);
    assert.deepEqual(
      messages.slice(2).map((message) => (message as { tool_call_id?: string }).tool_call_id),
      ["engine-0", "engine-1"],
      title,
    );
  }
});

test("of two turns that said the same, the one that stood in this place is meant", async () => {
  await using at = await proxyAt((_, index) => ({ tool_calls: [{ id: `engine-${index}`, name: "list", arguments: "{}" }] }));
  const client = await at.open();
  const made = (id: string) => ({
    role: "assistant",
    content: null,
    tool_calls: [{ id, type: "function", function: { name: "list", arguments: "{}" } }],
  });
  await client.say([hi]);
  await client.say([hi, made("a"), result("a")]);
  await client.say([hi, made("a"), result("a"), made("b"), result("b")]);
  const { messages } = await lastOf(at, client);
  assert.deepEqual(
    messages.flatMap((message) => message.tool_calls?.map((call) => call.id) ?? []),
    ["engine-0", "engine-1"],
  );
});

test("a text that speaks of an earlier call by its id is the turn that said it, and not that call, edited", async () => {
  let id = "";
  await using at = await proxyAt((_, index) => {
    if (index === 0) return { tool_calls: [{ id: "engine-0", name: "list", arguments: "{}" }] };
    return { text: index === 1 ? `The call ${id} listed the files.` : "End." };
  });
  const client = await at.open();
  const first = (await client.say([hi])) as Said;
  id = callsOf(first)[0]?.id ?? "";
  const asked = [hi, first, result(id)];
  const second = (await client.say(asked)) as Said;
  await client.say([...asked, { role: "assistant", content: second.content }, hi]);
  const { match, restored } = await lastOf(at, client);
  assert.equal(match, "exact");
  assert.deepEqual(restored, ["identical tool_call_id ", "identical content "]);
  const begun = (await client.entries()).filter((entry) => entry.type === "call_begun");
  assert.equal(begun[2]?.parent_call_id, begun[1]?.call_id);
});

test("white space that was dropped and reasoning that was trimmed come back", async () => {
  const blank = await sentBack({ ...two, text: "\n\n" }, (said) => [{ ...said, content: null }, ...resultsOf(said)]);
  assert.deepEqual(blank.restored, ["restored tool_call_id white_space"]);
  const trimmed = await sentBack({ ...two, reasoning: "\n think \n" }, (said) => [
    { ...said, reasoning_content: said.reasoning_content?.trim() },
    ...resultsOf(said),
  ]);
  assert.deepEqual(trimmed.restored, ["restored tool_call_id reasoning_white_space"]);
  const thoughtless = await sentBack({ ...two, reasoning: "\n\n" }, (said) => [
    { ...said, reasoning_content: undefined },
    ...resultsOf(said),
  ]);
  assert.deepEqual(thoughtless.restored, ["restored tool_call_id reasoning_white_space"]);
  for (const { match } of [blank, trimmed, thoughtless]) assert.equal(match, "exact");
});

/** Servers parse arguments before they render them, so what is no object goes to them as a JSON string of the sampled text. */
const asSent = (raw: string) => JSON.stringify(raw);
const argumentsOf = (message: { tool_calls?: { function: { arguments: string } }[] } | undefined) =>
  message?.tool_calls?.[0]?.function.arguments;

test("arguments that a harness wrapped because it could not parse them are the sampled string again", async () => {
  const raw = '{"path": "a';
  const wrap = (value: unknown) => (said: Said) => [
    { ...said, tool_calls: callsOf(said).map((call) => ({ ...call, function: { ...call.function, arguments: JSON.stringify(value) } })) },
    ...resultsOf(said),
  ];
  const reply: ScriptedReply = { tool_calls: [{ name: "read", arguments: raw }] };
  for (const text of [raw, raw.slice(0, 5)]) {
    const { messages, restored } = await sentBack(reply, wrap({ __unparsedToolInput: { raw: text, len: raw.length } }));
    assert.deepEqual(restored, ["restored tool_call_id arguments"]);
    assert.equal(argumentsOf(messages[1]), asSent(raw));
  }
  const other = await sentBack(reply, wrap({ __unparsedToolInput: { raw: "{}", len: 2 } }));
  assert.deepEqual(other.restored, ["edited tool_call_id arguments"]);
});

const malformed: ScriptedReply = { text: "Hm.", reasoning: "think", tool_calls: [{ name: "read", arguments: '{"path": "a' }] };
const withCalls = (change: (call: ChatCall) => unknown) => (said: Said) => [
  { ...said, tool_calls: callsOf(said).map(change) },
  ...resultsOf(said),
];
const args = (value: string) => withCalls((call) => ({ ...call, function: { ...call.function, arguments: value } }));
const edits: [string, ScriptedReply, (said: Said) => unknown[], string][] = [
  [
    "opencode names a tool `invalid`",
    malformed,
    withCalls((call) => ({ ...call, function: { name: "invalid", arguments: "{}" } })),
    "edited tool_call_id tool_name",
  ],
  ["Copilot writes {} for what it cannot parse", malformed, args("{}"), "edited tool_call_id arguments"],
  ["a harness repairs what it cannot parse", malformed, args('{"path": "a"}'), "edited tool_call_id arguments"],
  ["OpenHands adds a key", two, args('{"path":"éé","n":1,"security_risk":"UNKNOWN"}'), "edited tool_call_id arguments"],
  [
    "a call was left out",
    two,
    (said) => [{ ...said, tool_calls: callsOf(said).slice(1) }, ...resultsOf(said).slice(1)],
    "edited tool_call_id tool_calls",
  ],
  [
    "the second call was left out",
    two,
    (said) => [{ ...said, tool_calls: callsOf(said).slice(0, 1) }, ...resultsOf(said).slice(0, 1)],
    "edited tool_call_id tool_calls_cut",
  ],
  [
    "a call is there twice",
    two,
    (said) => [{ ...said, tool_calls: [callsOf(said)[0], callsOf(said)[0]] }, ...resultsOf(said)],
    "edited tool_call_id tool_calls",
  ],
  ["text was appended", two, (said) => [{ ...said, content: `${said.content} And more.` }, ...resultsOf(said)], "edited tool_call_id text"],
  [
    "text was appended, without any id",
    { text: "Done." },
    (said) => [{ ...said, content: `${said.content} And more.` }, hi],
    "edited content text",
  ],
  [
    "the text was cut",
    { text: "First this. Then that." },
    () => [{ role: "assistant", content: "First this." }, hi],
    "edited content text_cut",
  ],
  [
    "gptme writes reasoning into the text",
    { reasoning: "think hard", text: "Done." },
    () => [{ role: "assistant", content: "<think>\nthink hard\n</think>\n\nDone." }, hi],
    "edited content reasoning_as_text",
  ],
  [
    "Qwen makes reasoning a message of its own",
    { ...two, reasoning: "think hard" },
    (said) => [{ role: "assistant", content: "think hard" }, { ...said, reasoning_content: undefined }, ...resultsOf(said)],
    "edited tool_call_id reasoning_as_text",
  ],
  [
    "smolagents keeps calls as text",
    two,
    (said) => [{ role: "assistant", content: `Calling tools:\n[{'id': '${callsOf(said)[0]?.id}'}]` }, hi],
    "edited tool_call_id tool_calls",
  ],
];
for (const [title, reply, edit, label] of edits)
  test(`edited, labelled, not restored: ${title}`, async () => {
    let sent: unknown[] = [];
    const { restored, messages, match } = await sentBack(reply, (said) => {
      sent = edit(said);
      return sent;
    });
    assert.deepEqual(restored, [label]);
    assert.notEqual(match, "exact");
    const said = (list: unknown[]) =>
      (list as Said[])
        .filter((one) => one.role === "assistant")
        .map((one) => [one.content ?? "", one.tool_calls?.map((call) => call.function)]);
    assert.deepEqual(said(messages), said(sent));
  });

test("another's turn in our place belongs to no call, and is not called edited", async () => {
  const { restored } = await sentBack({ text: "Done." }, () => [{ role: "assistant", content: "Something else." }, hi]);
  assert.deepEqual(restored, []);
});

const toolUse = (name: string, rawArguments: string) => ({ name, arguments: rawArguments });
async function throughMessages(reply: ScriptedReply, stream: boolean, edit: (blocks: Block[]) => Block[] = (blocks) => blocks) {
  await using at = await proxyAt((_, index) => (index === 0 ? reply : { text: "End." }));
  const client = await at.open({ purpose: "train" });
  const tools = [{ name: "read", input_schema: { type: "object" } }];
  const ask = (messages: unknown[]) => client.post("/v1/messages", { model: "m", max_tokens: 9, messages, tools, stream });
  const { default: Anthropic } = await import("@anthropic-ai/sdk");
  const sdk = new Anthropic({ baseURL: at.proxy.url, apiKey: client.key });
  const body = { model: "m", max_tokens: 9, messages: [{ role: "user" as const, content: "hi" }], tools: tools as never };
  const { content } = stream ? await sdk.messages.stream(body).finalMessage() : await sdk.messages.create(body);
  const blocks = edit(content as unknown as Block[]);
  const results = blocks
    .filter((block) => block.type === "tool_use")
    .map((block) => ({ type: "tool_result", tool_use_id: block.id, content: "ok" }));
  const next = results.length > 0 ? results.toReversed() : [{ type: "text", text: "Again." }];
  await (await ask([hi, { role: "assistant", content: blocks }, { role: "user", content: next }])).text();
  return lastOf(at, client);
}

test("malformed arguments that Messages said as a text block come back as the call that was sampled", async () => {
  for (const stream of [true, false]) {
    for (const reply of [malformed, { ...malformed, reasoning: "" }, { tool_calls: [toolUse("read", "[1]")] }]) {
      const { restored, messages } = await throughMessages(reply, stream);
      assert.match(restored.join(), /^restored (carrier|content) malformed_arguments_as_text$/);
      assert.equal(argumentsOf(messages[1]), asSent(reply.tool_calls?.[0]?.arguments ?? ""));
    }
    const mixed = await throughMessages({ tool_calls: [toolUse("read", "{oops"), toolUse("read", spaced)] }, stream);
    assert.deepEqual(
      mixed.messages[1]?.tool_calls?.map((call) => call.function.arguments),
      [asSent("{oops"), spaced],
    );
    assert.deepEqual(mixed.restored, ["restored tool_call_id malformed_arguments_as_text,arguments"]);
  }
});

test("what Claude Code does to blocks is undone: dropped white space, cache marks, results in the order of their completion", async () => {
  const { match, messages } = await throughMessages({ ...two, text: "\n", reasoning: "hm" }, true, (blocks) =>
    blocks
      .filter((block) => block.type !== "text")
      .map((block) => (block.type === "tool_use" ? { ...block, cache_control: { type: "ephemeral" } } : block)),
  );
  assert.equal(match, "exact");
  assert.deepEqual(
    messages.slice(2).map((message) => (message as { tool_call_id?: string }).tool_call_id),
    ["engine-1", "engine-0"],
  );
});

test("Claude Code's fallback without streaming is the same turn", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyAt(() => ({ text: "once", beforeEnd: hold.promise }));
  const client = await at.open({ budgets: { max_turns: 1 } });
  const ask = (stream: boolean, signal?: AbortSignal) =>
    client.post("/v1/messages?beta=true", { model: "m", max_tokens: stream ? 32_000 : 21_333, messages: [hi], stream }, signal);
  const gone = new AbortController();
  const first = ask(true, gone.signal).then((response) => response.text());
  while (at.engine.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  gone.abort();
  await assert.rejects(first);
  const second = ask(false);
  await client.logged("answered");
  hold.resolve();
  const body = (await (await second).json()) as { content: Block[] };
  assert.equal(body.content[0]?.text, "once");
  assert.equal(at.engine.requests.length, 1);
});

test("a shell's call comes back in its own form and is the sampled string again", async () => {
  const raw = '{"command": ["bash","-lc","ls"],  "timeout_ms":5}';
  await using at = await proxyAt((_, index) => (index === 0 ? { tool_calls: [toolUse("local_shell", raw)] } : { text: "End." }));
  const client = await at.open({ purpose: "train" });
  const ask = async (input: unknown[]) => {
    const response = await client.post("/v1/responses", { model: "m", input, tools: [{ type: "local_shell" }], store: false });
    return (await response.json()) as { output: (Record<string, unknown> & { call_id: string })[] };
  };
  const { output } = await ask([hi]);
  assert.equal(output[0]?.type, "local_shell_call");
  await ask([hi, ...output, { type: "local_shell_call_output", id: output[0]?.call_id, output: "a.txt" }]);
  const { match, restored, messages } = await lastOf(at, client);
  assert.deepEqual([match, restored], ["exact", ["identical tool_call_id "]]);
  assert.equal(messages[1]?.tool_calls?.[0]?.function.arguments, raw);
});

test("of turns that said the same words, the one is restored that answered what stands before it, with its own thought", async () => {
  const replies = [
    { reasoning: "Of A.", text: "Done." },
    { reasoning: "Of B.", text: "Done." },
    { reasoning: "Of B again.", text: "Done." },
  ];
  await using at = await proxyAt((_, index) => replies[index] ?? { text: "End." });
  const client = await at.open({ purpose: "train", restore: "full" });
  const ask = (content: string) => ({ role: "user", content });
  for (const task of ["A", "B", "B"]) await client.say([ask(task)]);
  const done = { role: "assistant", content: "Done." };
  const thoughtOf = async (messages: unknown[]) => {
    await client.say([...messages, ask("More.")]);
    const sent = at.engine.requests.at(-1)?.messages as { reasoning?: string }[] | undefined;
    return sent?.[1]?.reasoning;
  };
  assert.equal(await thoughtOf([ask("A"), done]), "Of A.");
  // Siblings: where the thought came back it says whose turn it is.
  assert.equal(await thoughtOf([ask("B"), { ...done, reasoning_content: "Of B." }]), "Of B.");
  // An example of a user's, in the words of ours.
  assert.equal(await thoughtOf([ask("Say that you are done."), done]), undefined);
  const { calls } = await client.trajectory();
  assert.deepEqual(
    calls.slice(3).map(({ match, parent_call_id }) => [match, calls.findIndex(({ call_id }) => call_id === parent_call_id)]),
    [
      ["exact", 0],
      ["exact", 1],
      ["diverged", 2],
    ],
  );
});

test("full restore puts a thought back where something before it changed, as long as no other turn said the same", async () => {
  await using at = await proxyAt((_, index) => ({ reasoning: `Thought ${index}.`, text: `Said ${index}.` }));
  const client = await at.open({ purpose: "train", restore: "full" });
  const system = (content: string) => ({ role: "system", content });
  await client.say([system("It is noon."), hi]);
  await client.say([system("It is one."), hi, { role: "assistant", content: "Said 0." }, hi]);
  const sent = at.engine.requests.at(-1)?.messages as { reasoning?: string }[] | undefined;
  assert.equal(sent?.[2]?.reasoning, "Thought 0.");
});

test("a built-in tool's item that comes back as it was given is no edit, whatever defaults the model spelled out", async () => {
  const sampled: [type: string, rawArguments: string, given: string][] = [
    ["local_shell", '{"command":["ls"],"working_directory":null}', '{"env":{},"command":["ls"],"working_directory":null,"type":"exec"}'],
    ["local_shell", '{"command":["ls"], "env":{}}', '{"env":{},"command":["ls"],"type":"exec"}'],
    ["local_shell", '{"type":"exec","command":["ls"]}', '{"env":{},"type":"exec","command":["ls"]}'],
    ["local_shell", '{"command":["ls"],"type":"rm"}', '{"env":{},"command":["ls"],"type":"exec"}'],
    ["shell", '{"commands":["ls"],"timeout_ms":null}', '{"timeout_ms":null,"max_output_length":null,"commands":["ls"]}'],
    [
      "shell",
      '{"commands":["ls"],"timeout_ms":12345678901234567890}',
      '{"timeout_ms":12345678901234567890,"max_output_length":null,"commands":["ls"]}',
    ],
    ["apply_patch", '{"type":"delete_file","path":"a","diff":null}', '{"type":"delete_file","path":"a","diff":null}'],
  ];
  for (const [type, raw, given] of sampled) {
    await using at = await proxyAt((_, index) => (index === 0 ? { tool_calls: [toolUse(type, raw)] } : { text: "End." }));
    const client = await at.open({ purpose: "train" });
    const ask = async (input: unknown[]) => {
      const response = await client.post("/v1/responses", { model: "m", input, tools: [{ type }], store: false });
      return response.text();
    };
    const answered = await ask([hi]);
    assert.ok(answered.includes(given), `${answered} has ${given}`);
    const { output } = JSON.parse(answered) as { output: (Record<string, unknown> & { call_id: string })[] };
    await ask([hi, ...output, { type: `${type}_call_output`, call_id: output[0]?.call_id, status: "completed" }]);
    const { match, restored, messages } = await lastOf(at, client);
    assert.deepEqual([match, restored], ["exact", ["identical tool_call_id "]], raw);
    assert.equal(messages[1]?.tool_calls?.[0]?.function.arguments, raw);
  }
});

test("a built-in tool's item that asks for something else is an edit", async () => {
  await using at = await proxyAt((_, index) =>
    index === 0 ? { tool_calls: [toolUse("local_shell", '{"command":["ls"],"user":null}')] } : { text: "End." },
  );
  const client = await at.open({ purpose: "train" });
  const ask = async (input: unknown[]) => {
    const response = await client.post("/v1/responses", { model: "m", input, tools: [{ type: "local_shell" }] });
    return (await response.json()) as { output: Record<string, unknown>[] };
  };
  const { output } = await ask([hi]);
  await ask([hi, { ...output[0], action: { type: "exec", command: ["pwd"], env: {} } }]);
  const { match, restored, messages } = await lastOf(at, client);
  assert.deepEqual([match, restored], ["diverged", ["edited tool_call_id arguments"]]);
  assert.equal(messages[1]?.tool_calls?.[0]?.function.arguments, '{"command":["pwd"]}');
});
