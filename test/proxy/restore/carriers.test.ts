/**
 * Carriers (`thoughtSignature`, a signed thinking block, `encrypted_content`): a harness that sends one back has not
 * dropped the thought that it stands for, so the conversation stays one sequence wherever the template prints thoughts.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { type Content, GoogleGenAI, type Part } from "@google/genai";
import OpenAI from "openai";
import { newId } from "../../../base/schema/ids.ts";
import type { SessionSpec } from "../../../base/schema/session-spec.ts";
import { engineNamed } from "../../../engines/registry.ts";
import { carrierOf } from "../../../proxy/dialects/carrier.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { MemoryStore } from "../../../proxy/store/index.ts";
import { verifyTrajectory } from "../../../reconstruct/verify.ts";
import { type Policy, type Sampling, TemplatedEngine, type Thoughts } from "../../fakes/engines/templated-engine.ts";
import { Client } from "../../fakes/proxies/proxy-at.ts";

const turns = 6;
const sampled = (index: number): Sampling => ({
  text:
    `<think>\nStep ${index}, naïve 日本.\n</think>\n\n` +
    (index < turns - 1
      ? `I look.\n<tool_call>\n{"name": "bash", "arguments": {"command":  "ls ${index}"}}\n</tool_call>`
      : "Nothing is left."),
});

type At = AsyncDisposable & { engine: TemplatedEngine; proxy: HarnessProxy; client: Client; restart(): Promise<void> };

async function at(
  policy: Policy = ({ index }) => sampled(index),
  thoughts: Thoughts = "printed",
  spec: Partial<SessionSpec> = {},
): Promise<At> {
  await using scope = new AsyncDisposableStack();
  const engine = scope.use(await TemplatedEngine.start(policy, thoughts));
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  scope.defer(() => adapter.close());
  const store = new MemoryStore();
  const start = (): Promise<HarnessProxy> => HarnessProxy.start({ engine: adapter, store, version: "test" });
  const proxy = await start();
  const { session, key } = await proxy.openSession({ any_model: true, purpose: "train", ...spec });
  const release = scope.move();
  const place: At = {
    engine,
    proxy,
    client: new Client(proxy, session.id, key),
    restart: async () => {
      await place.proxy[Symbol.asyncDispose]();
      place.proxy = await start();
      await place.proxy.sessions.rebuild();
      place.client = new Client(place.proxy, session.id, key);
    },
    [Symbol.asyncDispose]: async () => {
      await place.proxy[Symbol.asyncDispose]();
      await release.disposeAsync();
    },
  };
  return place;
}

/** How each call's prompt was made, and the number of traces; every context on the record is one that the engine had. */
async function outcome({ client, engine }: At) {
  const trajectory = await client.trajectory();
  assert.deepEqual(verifyTrajectory(trajectory, engine.exchanges).mismatches, []);
  return {
    traces: trajectory.traces.length,
    modes: trajectory.calls.map(({ continuity }) => (continuity?.mode === "rendered" ? continuity.cause : continuity?.mode)),
    restored:
      trajectory.calls.at(-1)?.restored.map(({ status, evidence, differences }) => `${status} ${evidence} ${differences.join()}`) ?? [],
  };
}

/** Plays a tool loop over one wire: what the model said goes back as the harness keeps it. */
type Loop = (place: At) => Promise<void>;

const googleTools = [{ functionDeclarations: [{ name: "bash", parametersJsonSchema: { type: "object" } }] }];

function google(options: { stream: boolean; includeThoughts?: boolean; keep: (parts: Part[]) => Part[] }): Loop {
  return async ({ proxy, client }) => {
    const sdk = new GoogleGenAI({ apiKey: client.key, httpOptions: { baseUrl: proxy.url } });
    const contents: Content[] = [{ role: "user", parts: [{ text: "What is in naïve 日本?" }] }];
    for (let turn = 0; turn < turns; turn++) {
      const config = { tools: googleTools, thinkingConfig: { includeThoughts: options.includeThoughts ?? false } };
      const request = { model: "templated", contents, config };
      const said: Part[] = [];
      if (!options.stream) said.push(...((await sdk.models.generateContent(request)).candidates?.[0]?.content?.parts ?? []));
      else
        for await (const piece of await sdk.models.generateContentStream(request))
          said.push(...(piece.candidates?.[0]?.content?.parts ?? []));
      const responses = said.flatMap(({ functionCall: call }) =>
        call ? [{ functionResponse: { id: call.id ?? "", name: "bash", response: { output: `file ${turn}` } } }] : [],
      );
      contents.push({ role: "model", parts: options.keep(said) }, { role: "user", parts: responses });
    }
  };
}

function anthropic(stream: boolean, keep: (blocks: Anthropic.ContentBlock[]) => Anthropic.ContentBlockParam[]): Loop {
  return async ({ proxy, client }) => {
    const sdk = new Anthropic({ baseURL: proxy.url, apiKey: client.key });
    const messages: Anthropic.MessageParam[] = [{ role: "user", content: "What is in naïve 日本?" }];
    for (let turn = 0; turn < turns; turn++) {
      const body = { model: "templated", max_tokens: 999, messages, tools: [{ name: "bash", input_schema: { type: "object" as const } }] };
      const { content } = stream ? await sdk.messages.stream(body).finalMessage() : await sdk.messages.create(body);
      const results = content.flatMap((block) =>
        block.type === "tool_use" ? [{ type: "tool_result" as const, tool_use_id: block.id, content: `file ${turn}` }] : [],
      );
      messages.push({ role: "assistant", content: keep(content) }, { role: "user", content: results });
    }
  };
}

function responses(keep: (item: OpenAI.Responses.ResponseReasoningItem) => OpenAI.Responses.ResponseReasoningItem): Loop {
  return async ({ proxy, client }) => {
    const sdk = new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: client.key });
    const input: OpenAI.Responses.ResponseInputItem[] = [{ role: "user", content: "What is in naïve 日本?" }];
    for (let turn = 0; turn < turns; turn++) {
      const { output } = await sdk.responses.create({
        model: "templated",
        input,
        store: false,
        include: ["reasoning.encrypted_content"],
        tools: [{ type: "function", name: "bash", parameters: { type: "object" }, strict: null }],
      });
      for (const item of output) input.push(item.type === "reasoning" ? keep(item) : (item as OpenAI.Responses.ResponseInputItem));
      for (const item of output)
        if (item.type === "function_call") input.push({ type: "function_call_output", call_id: item.call_id, output: `file ${turn}` });
    }
  };
}

const withoutThoughts = (parts: Part[]): Part[] => parts.filter(({ thought }) => !thought);
const loops: Record<string, Loop> = {
  "Gemini's wire, whose thoughts were not asked for": google({ stream: false, keep: (parts) => parts }),
  "Gemini's wire as a stream": google({ stream: true, keep: (parts) => parts }),
  "Gemini's wire, whose thoughts the harness shows and leaves out": google({ stream: true, includeThoughts: true, keep: withoutThoughts }),
  "Gemini's wire, where one piece of a thought is left": google({
    stream: true,
    includeThoughts: true,
    keep: (parts) => [{ text: "Step", thought: true }, ...withoutThoughts(parts)],
  }),
  "Messages, with thinking whose text is omitted": anthropic(false, (blocks) =>
    blocks.map((block) => (block.type === "thinking" ? { ...block, thinking: "" } : (block as Anthropic.ContentBlockParam))),
  ),
  "Messages, with redacted thinking": anthropic(true, (blocks) =>
    blocks.map((block) =>
      block.type === "thinking" ? { type: "redacted_thinking", data: block.signature } : (block as Anthropic.ContentBlockParam),
    ),
  ),
  "Responses, with encrypted reasoning alone": responses(({ id, type, encrypted_content }) => ({
    id,
    type,
    summary: [],
    encrypted_content: encrypted_content ?? null,
  })),
  "Responses, with the reasoning item's id alone": responses(({ id, type }) => ({ id, type, summary: [] })),
};

for (const [wire, loop] of Object.entries(loops))
  test(`a tool loop whose thoughts come back in carriers is one trace: ${wire}`, async () => {
    await using place = await at();
    await loop(place);
    const { traces, modes, restored } = await outcome(place);
    assert.deepEqual(modes, ["first_turn", ...Array(turns - 1).fill("continued")]);
    assert.equal(traces, 1);
    for (const turn of restored) assert.match(turn, /^restored tool_call_id reasoning_carried/);
  });

test("a thought that a carrier brought back stays only where the template prints it", async () => {
  const keep = (parts: Part[]): Part[] => parts;
  await using never = await at(undefined, "never printed");
  await google({ stream: true, keep })(never);
  assert.deepEqual((await outcome(never)).modes, ["first_turn", ...Array(turns - 1).fill("reasoning_dropped")]);

  // Within the loop it is printed; once the user has spoken again it is not.
  await using until = await at(({ index }) => sampled(index % 3 === 2 ? turns : index), "until the user speaks");
  const sdk = new GoogleGenAI({ apiKey: until.client.key, httpOptions: { baseUrl: until.proxy.url } });
  const contents: Content[] = [{ role: "user", parts: [{ text: "Look." }] }];
  for (let turn = 0; turn < turns; turn++) {
    const { candidates } = await sdk.models.generateContent({ model: "templated", contents, config: { tools: googleTools } });
    const said = candidates?.[0]?.content ?? assert.fail();
    const called = said.parts?.find((part) => part.functionCall)?.functionCall;
    const result = { functionResponse: { id: called?.id ?? "", name: "bash", response: { output: "a" } } };
    contents.push(said, { role: "user", parts: [called ? result : { text: "Again." }] });
  }
  const { modes, traces } = await outcome(until);
  assert.deepEqual(modes, ["first_turn", "continued", "continued", "reasoning_dropped", "continued", "continued"]);
  assert.equal(traces, 2);
});

test("a text turn on Gemini's wire brings its hidden thought back too, and so does a turn of a thought alone", async () => {
  for (const stream of [true, false]) {
    await using place = await at(({ index }) => ({ text: `<think>\nStep ${index}.\n</think>\n\n${index === 1 ? "" : `Turn ${index}.`}` }));
    const sdk = new GoogleGenAI({ apiKey: place.client.key, httpOptions: { baseUrl: place.proxy.url } });
    const chat = sdk.chats.create({ model: "templated" });
    for (const message of ["One.", "Two.", "Three.", "Four."])
      if (!stream) await chat.sendMessage({ message });
      else for await (const _ of await chat.sendMessageStream({ message }));
    const { modes, traces, restored } = await outcome(place);
    assert.deepEqual(modes, ["first_turn", "continued", "continued", "continued"]);
    assert.equal(traces, 1);
    for (const turn of restored) assert.match(turn, /^restored carrier reasoning_carried/);
  }
});

test("a turn without words that comes back as it was sampled is recognised: a thought alone, white space alone, nothing", async () => {
  for (const text of ["<think>\nHm.\n</think>\n\n", " \n", ""]) {
    await using place = await at(({ index }) => ({ text: index < 3 ? text : "Done." }));
    const messages: unknown[] = [{ role: "user", content: "Go on." }];
    for (let turn = 0; turn < 4; turn++) messages.push(await place.client.say(messages), { role: "user", content: "Go on." });
    const { modes, traces, restored } = await outcome(place);
    assert.deepEqual(modes, ["first_turn", "continued", "continued", "continued"], JSON.stringify(text));
    assert.equal(traces, 1);
    assert.deepEqual(restored, Array(3).fill("identical content "));
  }
});

type Block = Anthropic.ContentBlockParam;

/** What a harness on the Messages wire makes of a turn of a thought alone; null: it leaves the turn out. */
const wordless: [string, (blocks: Block[]) => Block[] | null, restored: string][] = [
  ["as it was sampled", (blocks) => blocks, "identical carrier "],
  ["without its signature", (blocks) => blocks.map((block) => ({ ...block, signature: "" })), "identical content "],
  ["with nothing in it", () => [], "restored content reasoning_restored"],
  ["with words of the harness's own", () => [{ type: "text", text: "(no content)" }], "restored content stand_in"],
  ["left out", () => null, "restored content turn_dropped"],
];

for (const [how, serialise, expected] of wordless)
  test(`a turn of a thought alone that Messages brings back ${how} is one trace under full restore`, async () => {
    await using place = await at(({ index }) => ({ text: `<think>\nHm.\n</think>\n\n${index === 2 ? "Done." : ""}` }), "printed", {
      restore: "full",
    });
    const sdk = new Anthropic({ baseURL: place.proxy.url, apiKey: place.client.key, maxRetries: 0 });
    const messages: Anthropic.MessageParam[] = [{ role: "user", content: "Go on." }];
    for (let turn = 0; turn < 4; turn++) {
      const { content } = await sdk.messages.create({ model: "templated", max_tokens: 99, messages });
      const back = content.some(({ type }) => type === "text") ? content : serialise(content as Block[]);
      if (back !== null) messages.push({ role: "assistant", content: back });
      messages.push({ role: "user", content: `And then? ${turn}` });
    }
    const { modes, traces, restored } = await outcome(place);
    assert.deepEqual([modes, traces], [["first_turn", "continued", "continued", "continued"], 1]);
    assert.deepEqual(restored.slice(0, 2), [expected, expected]);
  });

test("words in brackets that the model itself said in that place stay its own, and no other words are taken for a thought", async () => {
  const texts = ["<think>\nHm.\n</think>\n\n", "(no content)", "Done.", "Done."];
  await using place = await at(({ index }) => ({ text: texts[index] ?? "Done." }), "printed", { restore: "full" });
  const hi = { role: "user", content: "Go on." };
  await place.client.say([hi]);
  const said = await place.client.say([hi]);
  await place.client.say([hi, said, hi]);
  assert.deepEqual((await outcome(place)).restored, ["identical content "]);
  await place.client.say([hi, { role: "assistant", content: "I was stopped." }, hi]);
  assert.deepEqual((await outcome(place)).restored, []);
});

test("a turn without words is recognised in its own place only, and another's thought is not called ours", async () => {
  await using place = await at(({ index }) => ({ text: index === 0 ? " \n" : "Done." }));
  const ask = (content: string) => ({ role: "user", content });
  const blank = { role: "assistant", content: " \n" };
  await place.client.say([ask("One.")]);
  for (const messages of [
    [ask("Two."), blank, ask("More.")],
    [ask("One."), { role: "assistant", content: "", reasoning_content: "What I never thought." }, ask("More.")],
  ]) {
    await place.client.say(messages);
    assert.deepEqual((await outcome(place)).restored, []);
  }
});

/** One sampled turn, what an agent makes of it on the Messages wire, and what the engine was then shown of it. */
async function sentBack(forge: (carrier: string, call: Anthropic.ToolUseBlock) => Anthropic.ContentBlockParam[], other?: At) {
  await using place = await at(({ index }) => ({ text: sampled(index).text.replace("I look.\n", "") }));
  const ask = (to: At, messages: Anthropic.MessageParam[]) =>
    new Anthropic({ baseURL: to.proxy.url, apiKey: to.client.key, maxRetries: 0 }).messages.create({
      model: "templated",
      max_tokens: 99,
      messages,
      tools: [{ name: "bash", input_schema: { type: "object" } }],
    });
  const hi: Anthropic.MessageParam = { role: "user", content: "Look." };
  const { content } = await ask(place, [hi]);
  const call = content.find((block) => block.type === "tool_use") ?? assert.fail();
  const thinking = (other ? (await ask(other, [hi])).content : content).find((block) => block.type === "thinking") ?? assert.fail();
  const result: Anthropic.MessageParam = { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "a.txt" }] };
  await ask(place, [hi, { role: "assistant", content: forge(thinking.signature, call) }, result]);
  const shown = place.engine.exchanges.at(-1)?.request.messages as { role: string; reasoning?: string }[] | undefined;
  const trajectory = await place.client.trajectory();
  const sampledIds = place.engine.exchanges.reduce((sum, { token_ids }) => sum + token_ids.length, 0);
  const trained = trajectory.nodes.reduce((sum, node) => sum + (node.kind === "sampled" ? node.token_ids.length : 0), 0);
  assert.equal(trained, sampledIds, "what counts as sampled is what the engine sampled");
  return { ...(await outcome(place)), reasoning: shown?.find(({ role }) => role === "assistant")?.reasoning };
}

test("a forged, cut, mutated or foreign carrier brings nothing back, and ours brings back what the record says alone", async () => {
  const forged = newId("call");
  const use = (call: Anthropic.ToolUseBlock): Anthropic.ContentBlockParam => ({
    type: "tool_use",
    id: call.id,
    name: call.name,
    input: call.input,
  });
  const hostile: [string, (carrier: string) => string][] = [
    ["of no call", () => carrierOf(forged)],
    ["cut", (carrier) => carrier.slice(0, -1)],
    ["mutated", (carrier) => carrier.replace(/.$/, (last) => (last === "a" ? "b" : "a"))],
    ["with a tail", (carrier) => `${carrier}\n`],
    ["a name on every object", () => "ali1.__proto__"],
    ["huge", () => "ali1.".padEnd(1_000_000, "call")],
  ];
  for (const [title, change] of hostile) {
    const { modes, reasoning } = await sentBack((carrier, call) => [{ type: "redacted_thinking", data: change(carrier) }, use(call)]);
    assert.deepEqual([modes[1], reasoning], ["reasoning_dropped", undefined], title);
  }
  await using other = await at(() => ({ text: "<think>\nAnother's.\n</think>\n\nHello." }));
  const foreign = await sentBack((carrier, call) => [{ type: "redacted_thinking", data: carrier }, use(call)], other);
  assert.deepEqual([foreign.modes[1], foreign.reasoning], ["reasoning_dropped", undefined]);

  // Words of the agent's own beside a carrier stay the agent's own.
  const edited = await sentBack((signature, call) => [
    { type: "thinking", thinking: "I was told to stop.", signature },
    { type: "redacted_thinking", data: signature },
    use(call),
  ]);
  assert.deepEqual(
    [edited.modes[1], edited.restored, edited.reasoning],
    ["edited", ["edited tool_call_id reasoning"], "I was told to stop."],
  );
  // Words of ours in another order are other words.
  const turned = await sentBack((signature, call) => [
    { type: "thinking", thinking: "日本.", signature },
    { type: "thinking", thinking: "Step 0", signature },
    { type: "redacted_thinking", data: signature },
    use(call),
  ]);
  assert.deepEqual([turned.modes[1], turned.restored], ["edited", ["edited tool_call_id reasoning"]]);
  const often = await sentBack((data, call) => [...Array(50).fill({ type: "redacted_thinking", data }), use(call)]);
  assert.deepEqual([often.modes[1], often.traces], ["continued", 1]);
  // An edited call keeps the thought that came with it.
  const call = await sentBack((data, said) => [{ type: "redacted_thinking", data }, { ...use(said), input: { command: "rm" } } as never]);
  assert.deepEqual([call.modes[1], call.restored, call.reasoning], ["edited", ["edited tool_call_id arguments"], "Step 0, naïve 日本."]);
});

test("carriers of two turns side by side are two turns", async () => {
  await using place = await at(({ index }) => ({ text: `<think>\nStep ${index}.\n</think>\n\n` }));
  const sdk = new Anthropic({ baseURL: place.proxy.url, apiKey: place.client.key });
  const ask: Anthropic.MessageParam = { role: "user", content: "Look." };
  const turn = async (messages: Anthropic.MessageParam[]): Promise<Anthropic.MessageParam> => {
    const { content } = await sdk.messages.create({ model: "templated", max_tokens: 99, messages });
    return { role: "assistant", content: [{ type: "redacted_thinking", data: (content[0] as Anthropic.ThinkingBlock).signature }] };
  };
  const first = await turn([ask]);
  const second = await turn([ask, first, ask]);
  await turn([ask, first, second, ask]);
  assert.deepEqual((await outcome(place)).restored, Array(2).fill("restored carrier reasoning_carried"));
});

test("a carrier is understood after the proxy was started anew", async () => {
  await using place = await at();
  const sdk = () => new GoogleGenAI({ apiKey: place.client.key, httpOptions: { baseUrl: place.proxy.url } });
  const contents: Content[] = [{ role: "user", parts: [{ text: "Look." }] }];
  for (let turn = 0; turn < 3; turn++) {
    const { candidates } = await sdk().models.generateContent({ model: "templated", contents, config: { tools: googleTools } });
    const said = candidates?.[0]?.content ?? assert.fail();
    const called = said.parts?.find((part) => part.functionCall)?.functionCall;
    contents.push(said, { role: "user", parts: [{ functionResponse: { id: called?.id ?? "", name: "bash", response: { output: "a" } } }] });
    await place.restart();
  }
  const { modes, traces } = await outcome(place);
  assert.deepEqual(modes, ["first_turn", "continued", "continued"]);
  assert.equal(traces, 1);
});
