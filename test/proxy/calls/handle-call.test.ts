import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { encode, endOfTurn, logprobOf, render } from "../../fakes/engines/scripted-engine.ts";
import { enginesAt } from "../../fakes/proxies/engines-at.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

const bash = { type: "function", function: { name: "bash", parameters: { type: "object", properties: { command: { type: "string" } } } } };
const hi = [{ role: "user", content: "hi" }];

test("a call is recorded with the ids and logprobs that the engine gave", async () => {
  await using at = await proxyAt(() => ({ text: "Hello." }));
  const client = await at.open({ purpose: "train" });
  assert.equal((await client.say(hi)).content, "Hello.");
  const finished = (await client.entries()).find((entry) => entry.type === "call_finished");
  const prompt = render({ messages: hi });
  const sampled = [...encode("Hello."), endOfTurn];
  assert.deepEqual(finished?.prompt_ids?.new, prompt);
  assert.deepEqual(finished?.sampled_ids, sampled);
  assert.deepEqual(
    finished?.logprobs,
    sampled.map((id, index) => logprobOf(id, prompt.length + index)),
  );
  assert.equal(finished?.missing, null);
  assert.deepEqual(at.unseen, []);
});

test("the call is durable before the terminal event leaves", async () => {
  await using at = await proxyAt(() => ({ text: "Hello." }));
  const client = await at.open();
  const response = await client.chat({ messages: hi, stream: true });
  const text = await response.text();
  assert.match(text, /\[DONE\]/);
  const types = (await client.entries()).map((entry) => entry.type);
  assert.ok(types.indexOf("call_finished") > types.indexOf("call_begun"));
});

test("training forces the neutral sampling and records what was asked for", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open({ purpose: "train", sampling: { max_tokens: 7 } });
  const bent = { logit_bias: { 5: 100 }, allowed_token_ids: [5], bad_words: ["x"], min_tokens: 3, thinking_token_budget: 1 };
  await client.say(hi, { temperature: 0, top_p: 0.5, presence_penalty: 1, ...bent });
  const sent = at.engine.requests[0];
  assert.deepEqual(
    Object.keys(bent).filter((name) => sent?.[name] !== undefined),
    [],
  );
  assert.deepEqual([sent?.temperature, sent?.top_p, sent?.top_k, sent?.presence_penalty, sent?.max_tokens], [1, 1, -1, 0, 7]);
  const begun = (await client.entries()).find((entry) => entry.type === "call_begun");
  assert.equal(begun?.requested_sampling.temperature, 0);
  assert.equal(begun?.effective_sampling.temperature, 1);
});

test("texts of one message stay apart on their way to the engine, as vLLM itself puts them into one", async () => {
  await using at = await proxyAt(() => ({ tool_calls: [{ name: "bash", arguments: "{}" }] }));
  const client = await at.open({ purpose: "train" });
  const texts = ["stdout line", "exit 0"].map((text) => ({ type: "text", text }));
  const messages = [{ role: "user", content: texts }];
  const post = async (more: unknown[]) => {
    const answer = await client.post("/v1/messages", { model: "m", max_tokens: 9, messages: [...messages, ...more] });
    return (await answer.json()) as { content: { id: string }[] };
  };
  const { content } = await post([]);
  const result = { type: "tool_result", tool_use_id: content[0]?.id, content: texts, is_error: true };
  await post([
    { role: "assistant", content },
    { role: "user", content: [result] },
  ]);
  const sent = at.engine.requests.at(-1)?.messages as { content: unknown }[];
  assert.equal(sent[0]?.content, "stdout line\nexit 0");
  assert.equal(sent[2]?.content, "[tool error] stdout line\nexit 0");
});

test("a person's live session is sampled as the person asked", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open({ purpose: "live", relay: "live" });
  await client.say(hi, { temperature: 0.2 });
  assert.equal(at.engine.requests[0]?.temperature, 0.2);
  assert.equal(at.engine.requests[0]?.top_k, undefined);
});

test("forced sampling as a list follows the main agent's turns and its last entry repeats", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open({ sampling: [{ seed: 1 }, { seed: 2 }] });
  for (const content of ["a", "b", "c"]) await client.say([{ role: "user", content }]);
  assert.deepEqual(
    at.engine.requests.map((request) => request.seed),
    [1, 2, 2],
  );
});

test("a session's seed gives each call a seed of its own, by its task, its place and its turn, and another session the same ones", async () => {
  await using at = await proxyAt((_, index) => (index === 1 ? { refuse: { status: 500, message: "boom" } } : { text: "ok" }));
  const seedsOf = async (spec: object): Promise<unknown[]> => {
    const from = at.engine.requests.length;
    const client = await at.open({ seed: 7, task_id: "t", sample_index: 0, sampling: { seed: 5 }, ...spec });
    for (const content of ["a", "b", "b", "c"]) await client.chat({ messages: [{ role: "user", content }], seed: 3 });
    const recorded = (await client.entries()).flatMap((entry) => (entry.type === "call_begun" ? [entry.effective_sampling.seed] : []));
    const sent = at.engine.requests.slice(from).map(({ seed }) => seed);
    assert.deepEqual(recorded, sent, "the record has what was sent");
    return sent;
  };
  const [first, failed, again, last] = await seedsOf({});
  assert.equal(failed, again, "the repetition of a failed call is the same turn");
  const same = await seedsOf({});
  assert.deepEqual([same[0], same[1]], [first, failed]);
  const others = [await seedsOf({ seed: 8 }), await seedsOf({ task_id: "u" }), await seedsOf({ sample_index: 1 })];
  const seeds = [first, failed, last, ...others.flat()] as number[];
  assert.equal(new Set(seeds).size, 3 + 3 * 4);
  assert.ok(seeds.every((seed) => Number.isInteger(seed) && seed >= 0 && seed < 2 ** 31));
});

test("a turn that is repeated later, and again, keeps its own entry of forced sampling", async () => {
  await using at = await proxyAt((_, index) =>
    index === 0 || index === 2 ? { refuse: { status: 500, message: "boom" } } : { text: "ok" },
  );
  const client = await at.open({ sampling: [{ seed: 1 }, { seed: 2 }, { seed: 3 }] });
  for (const content of ["a", "b", "a", "a", "c"]) await client.chat({ messages: [{ role: "user", content }] });
  assert.deepEqual(
    at.engine.requests.map((request) => request.seed),
    [1, 2, 1, 1, 3],
  );
});

test("a turn that comes back re-serialised is restored, the engine gets its own ids, and the edge is exact", async () => {
  await using at = await proxyAt((_, index) =>
    index === 0
      ? { text: "Look: ", tool_calls: [{ id: "engine-id", name: "bash", arguments: '{ "command" :  "ls" }' }] }
      : { text: "done" },
  );
  const client = await at.open({ purpose: "train" });
  const turn = await client.say(hi, { tools: [bash] });
  const [call] = turn.tool_calls as { id: string; function: { arguments: string } }[];
  assert.match(call!.id, /^[a-z0-9]{1,40}$/);
  const echoed = {
    role: "assistant",
    content: "Look:",
    tool_calls: [{ ...call, function: { name: "bash", arguments: '{"command":"ls"}' } }],
  };
  await client.say([...hi, echoed, { role: "tool", tool_call_id: call!.id, content: "a.txt" }], { tools: [bash] });
  const sent = at.engine.requests[1]!.messages;
  assert.equal(sent[1]!.tool_calls![0]!.id, "engine-id");
  assert.equal(sent[1]!.tool_calls![0]!.function.arguments, '{ "command" :  "ls" }');
  assert.equal(sent[1]!.content, "Look: ");
  assert.equal((sent[2] as { tool_call_id?: string }).tool_call_id, "engine-id");
  const trajectory = await client.trajectory();
  assert.deepEqual(
    trajectory.calls.map((one) => one.match),
    ["root", "exact"],
  );
  assert.equal(trajectory.traces.length, 1);
  assert.deepEqual(trajectory.calls[1]!.restored[0], {
    message_index: 1,
    from_call_id: trajectory.calls[0]!.call_id,
    evidence: "tool_call_id",
    status: "restored",
    differences: ["arguments", "white_space"],
  });
});

test("a turn whose arguments were changed is not restored, and is labelled edited", async () => {
  await using at = await proxyAt((_, index) =>
    index === 0 ? { tool_calls: [{ name: "bash", arguments: '{"command":"ls"}' }] } : { text: "done" },
  );
  const client = await at.open();
  const [call] = (await client.say(hi, { tools: [bash] })).tool_calls as { id: string }[];
  const edited = {
    role: "assistant",
    content: null,
    tool_calls: [{ ...call, function: { name: "bash", arguments: '{"command":"ls","timeout":5}' } }],
  };
  await client.say([...hi, edited, { role: "tool", tool_call_id: call!.id, content: "a.txt" }], { tools: [bash] });
  assert.equal(at.engine.requests[1]!.messages[1]!.tool_calls![0]!.function.arguments, '{"command":"ls","timeout":5}');
  const trajectory = await client.trajectory();
  assert.equal(trajectory.calls[1]!.restored[0]!.status, "edited");
  assert.deepEqual([trajectory.calls[1]!.match, trajectory.calls[1]!.cause], ["diverged", "arguments_changed"]);
});

test("reasoning that a harness dropped stays dropped, and comes back under restore: full", async () => {
  for (const [policy, expected] of [
    ["serialisation", undefined],
    ["full", "think"],
  ] as const) {
    await using at = await proxyAt((_, index) => (index === 0 ? { reasoning: "think", text: "answer" } : { text: "done" }));
    const client = await at.open({ restore: policy });
    await client.say(hi);
    await client.say([...hi, { role: "assistant", content: "answer" }, { role: "user", content: "more" }]);
    assert.equal(at.engine.requests[1]!.messages[1]!.reasoning, expected, policy);
    const { calls } = await client.trajectory();
    assert.deepEqual([calls[1]!.match, calls[1]!.cause], policy === "full" ? ["exact", null] : ["diverged", "reasoning_dropped"]);
  }
});

test("malformed tool arguments stay the string that was sampled", async () => {
  await using at = await proxyAt(() => ({ tool_calls: [{ name: "bash", arguments: '{"command": "ls' }] }));
  const client = await at.open();
  const [call] = (await client.say(hi, { tools: [bash] })).tool_calls as { function: { arguments: string } }[];
  assert.equal(call!.function.arguments, '{"command": "ls');
});

test("an unknown or missing key is refused, and a key works in the path", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const body = JSON.stringify({ model: "m", messages: hi });
  const headers = { "content-type": "application/json" };
  assert.equal((await fetch(`${at.proxy.url}/v1/chat/completions`, { method: "POST", body, headers })).status, 401);
  assert.equal(
    (
      await fetch(`${at.proxy.url}/v1/chat/completions`, {
        method: "POST",
        body,
        headers: { ...headers, authorization: "Bearer sk-wrong" },
      })
    ).status,
    401,
  );
  assert.equal((await fetch(`${at.proxy.url}/s/${client.key}/v1/chat/completions`, { method: "POST", body, headers })).status, 200);
  assert.equal((await fetch(`${at.proxy.url}/v1/nothing`, { method: "POST", body, headers })).status, 404);
});

test("a sealed session answers in a form that no SDK retries, and what it holds stays readable", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  await client.say(hi);
  await at.proxy.session(client.sessionId).seal("enough");
  const chat = await client.chat({ messages: hi });
  assert.deepEqual([chat.status, chat.headers.get("x-should-retry")], [400, "false"]);
  const messages = await client.post("/v1/messages", { model: "m", max_tokens: 5, messages: hi });
  assert.equal(messages.status, 403);
  assert.equal((await client.trajectory()).calls.length, 1);
});

test("a spent budget names itself and ends the session's calls", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open({ budgets: { max_turns: 1 } });
  await client.say(hi);
  const refused = await client.chat({ messages: [{ role: "user", content: "again" }] });
  assert.equal(refused.status, 400);
  assert.match(JSON.stringify(await refused.json()), /budget_spent.*max_turns|max_turns.*budget_spent/);
  assert.equal(at.proxy.session(client.sessionId).state.stopReason, "budget_spent");
});

test("bad bodies are answered 400 and do not end the process", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  for (const body of ["[]", "5", "{", '{"model":"m","messages":5}', `${"[".repeat(1_000_000)}`, '{"model":"m","messages":[],"n":2}'])
    for (const path of ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
      assert.equal((await client.post(path, body)).status, 400, `${path} ${body.slice(0, 30)}`);
  assert.equal((await client.say(hi)).content, "ok");
  assert.deepEqual(at.unseen, []);
});

test("a body that cannot be read is on the record like one that says nothing sensible, and a sealed log takes neither", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const session = at.proxy.session(client.sessionId);
  for (const body of ["{", '{"model":"m"}']) {
    const { error } = (await (await client.post("/v1/chat/completions", body)).json()) as { error: { message: string } };
    await client.settled();
    const last = (await client.entries()).at(-1);
    assert.deepEqual([last?.type, last?.type === "refused" && last.error.message], ["refused", error.message]);
    assert.equal(session.state.lastError?.message, error.message);
  }
  await session.seal("done");
  assert.equal((await client.post("/v1/chat/completions", "{")).status, 400);
  await client.settled();
  assert.equal((await client.entries()).at(-1)?.type, "sealed");
  assert.deepEqual(at.unseen, []);
});

test("a client that leaves in the middle of its body was told nothing: it is no error of the session", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const headers = { authorization: `Bearer ${client.key}`, "content-length": 1_000 };
  const asking = request(`${at.proxy.url}/v1/chat/completions`, { method: "POST", headers });
  asking.on("error", () => undefined);
  await new Promise((resolve) => asking.write("{", resolve));
  asking.destroy();
  assert.equal((await client.say(hi)).content, "ok");
  await client.settled();
  assert.ok(!(await client.entries()).some((entry) => entry.type === "refused"));
  assert.deepEqual([at.proxy.session(client.sessionId).state.lastError, at.unseen], [null, []]);
});

test("a developer turn that the template would drop goes out as a system turn, and the call says so", async () => {
  for (const drops of [true, false]) {
    await using at = await proxyAt((request) => (request.probe && drops ? { quirk: "drops_developer" } : { text: "ok" }));
    const client = await at.open();
    await client.say([{ role: "developer", content: "be brief" }, ...hi]);
    assert.equal(at.engine.requests[0]!.messages[0]!.role, drops ? "system" : "developer");
    const [call] = (await client.trajectory()).calls;
    assert.deepEqual(call!.role_mapping, drops ? { developer: "system" } : {});
  }
});

test("after a try at another engine the call tells the roles of the engine that sampled it", async () => {
  const mappings: Record<string, Record<string, string>> = { a: { developer: "system" }, b: {} };
  const isDropping = (name: string): boolean => mappings[name]?.developer !== undefined;
  await using at = await enginesAt((name, { probe }) => (probe && isDropping(name) ? { quirk: "drops_developer" } : { text: "ok" }), {
    a: {},
    b: {},
  });
  const client = await at.open();
  const ask = (text: string) =>
    client.say([
      { role: "developer", content: "be brief" },
      { role: "user", content: text },
    ]);
  await ask("first");
  const [first] = (await client.trajectory()).calls;
  await at.engines[first?.engine_name ?? ""]?.[Symbol.asyncDispose]();
  await ask("second");
  const { calls } = await client.trajectory();
  assert.deepEqual(
    calls.map((call) => call.tries.length),
    [1, 2],
  );
  assert.deepEqual(
    calls.map((call) => call.role_mapping),
    calls.map((call) => mappings[call.engine_name ?? ""]),
  );
});

test("a picture in an assistant message reaches the engine in its place, and every other turn is a text as before", async () => {
  await using at = await proxyAt(() => ({ text: "ok" }));
  const client = await at.open();
  const url = "data:image/png;base64,AA==";
  const shows = [
    { type: "text", text: "Here:" },
    { type: "image_url", image_url: { url } },
  ];
  await client.say([
    { role: "user", content: "draw" },
    { role: "assistant", content: shows },
    { role: "user", content: "again" },
    { role: "assistant", content: "No." },
    { role: "user", content: "please" },
  ]);
  assert.deepEqual(
    at.engine.requests[0]?.messages.map(({ content }) => content),
    ["draw", shows, "again", "No.", "please"],
  );
  assert.deepEqual((await client.trajectory()).fidelity.excluded, { images: 3 });
});
