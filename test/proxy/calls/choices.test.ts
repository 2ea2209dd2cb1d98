/** Several samples of one request, through the vendor's SDK: a call each, one answer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Candidate, type GenerateContentResponse, GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { decode, encode, type WireRequest } from "../../fakes/engines/scripted-engine.ts";
import { until } from "../../fakes/machine/until.ts";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";

const hi = [{ role: "user" as const, content: "hi" }];
const openaiOf = ({ proxy, key }: Client) => new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: key, maxRetries: 0 });
const begunIn = async (client: Client) => (await client.entries()).flatMap((entry) => (entry.type === "call_begun" ? [entry] : []));

/** Says what it was asked: the answers come in any order, and each must stand in its place. */
const echo = ({ prompt, seed }: WireRequest) => ({
  text: `${Array.isArray(prompt) ? decode(prompt) : (prompt ?? "")}${String(seed ?? "")}`,
});

for (const relay of ["buffered", "live"] as const)
  for (const stream of [false, true])
    test(`n samples and lists of prompts are a call each and one answer: ${relay}, ${stream ? "streamed" : "whole"}`, async () => {
      await using at = await proxyAt(echo);
      const client = await at.open({ relay });
      const openai = openaiOf(client);
      const usages: (OpenAI.CompletionUsage | null | undefined)[] = [];
      const chat = async (): Promise<(string | null)[]> => {
        const body = { model: "any", messages: hi, n: 3, seed: 7 };
        if (!stream) {
          const { choices, usage } = await openai.chat.completions.create(body);
          usages.push(usage);
          return choices.map(({ index, message }, at) => (index === at ? message.content : null));
        }
        const texts: string[] = [];
        const ids = new Set<string>();
        for await (const { id, choices, usage } of await openai.chat.completions.create({
          ...body,
          stream,
          stream_options: { include_usage: true },
        })) {
          ids.add(id);
          if (usage) usages.push(usage);
          for (const { index, delta } of choices) texts[index] = (texts[index] ?? "") + (delta.content ?? "");
        }
        assert.equal(ids.size, 1);
        return texts;
      };
      const complete = async (prompt: string[] | number[][]): Promise<string[]> => {
        const body = { model: "any", prompt, n: 2, seed: 1 };
        const texts: string[] = [];
        const pieces = stream ? await openai.completions.create({ ...body, stream }) : [await openai.completions.create(body)];
        for await (const { choices } of pieces) for (const { index, text } of choices) texts[index] = (texts[index] ?? "") + text;
        return texts;
      };
      assert.deepEqual(await chat(), ["7", "8", "9"]);
      assert.deepEqual(await complete(["a", "b"]), ["a1", "a2", "b1", "b2"]);
      assert.deepEqual(await complete([encode("c"), encode("dd")]), ["c1", "c2", "dd1", "dd2"]);
      const { calls } = await client.trajectory();
      const sampled = calls.slice(0, 3).map(({ usage }) => usage?.sampled_tokens ?? 0);
      assert.deepEqual(
        usages.map((usage) => usage?.completion_tokens),
        [sampled.reduce((sum, one) => sum + one, 0)],
      );
      const begun = await begunIn(client);
      assert.deepEqual(
        begun.map(({ native }) => native.choice),
        [3, 4, 4].flatMap((of) => Array.from({ length: of }, (_, index) => ({ index, of }))),
      );
      // The log holds their conversation once.
      assert.deepEqual(
        begun.slice(1, 3).map(({ messages }) => messages.new),
        [[], []],
      );
      assert.ok(calls.every(({ outcome }) => outcome === "delivered"));
      assert.ok(at.engine.requests.every(({ n }) => n === undefined));
      assert.deepEqual(at.unseen, []);
    });

for (const stream of [false, true])
  test(`candidates of Google's SDK are a call each and one answer: ${stream ? "streamed" : "whole"}`, async () => {
    await using at = await proxyAt(echo);
    const client = await at.open({ relay: "live" });
    const google = new GoogleGenAI({ apiKey: client.key, httpOptions: { baseUrl: at.proxy.url } });
    const request = { model: "any", contents: "hi", config: { candidateCount: 3, seed: 7 } };
    const pieces: GenerateContentResponse[] = [];
    if (stream) for await (const piece of await google.models.generateContentStream(request)) pieces.push(piece);
    else pieces.push(await google.models.generateContent(request));
    const all = pieces.flatMap(({ candidates }) => candidates ?? []);
    const textOf = (index: number): string =>
      all
        .filter((one) => one.index === index)
        .map(wordsOf)
        .join("");
    assert.deepEqual([0, 1, 2].map(textOf), ["7", "8", "9"]);
    assert.equal(all.filter(({ finishReason }) => finishReason === "STOP").length, 3);
    assert.equal(new Set(pieces.map(({ responseId }) => responseId)).size, 1);
    const { calls } = await client.trajectory();
    const sampled = calls.reduce((sum, { usage }) => sum + (usage?.sampled_tokens ?? 0), 0);
    const usages = pieces.flatMap(({ usageMetadata }) => usageMetadata?.candidatesTokenCount ?? []);
    assert.deepEqual([calls.length, usages], [3, [sampled]]);
    assert.deepEqual(
      (await begunIn(client)).map(({ native }) => native.choice),
      [0, 1, 2].map((index) => ({ index, of: 3 })),
    );
    assert.deepEqual(at.unseen, []);
  });

const wordsOf = ({ content }: Candidate): string => (content?.parts ?? []).map(({ text }) => text ?? "").join("");

for (const stream of [false, true])
  test(`where one of them fails the request fails, and its next try asks for that one alone: ${stream ? "streamed" : "whole"}`, async () => {
    let failing = true;
    await using at = await proxyAt((request) =>
      failing && request.seed === 8 ? { refuse: { status: 500, message: "no room" } } : echo(request),
    );
    const client = await at.open({ relay: "buffered" });
    const body = { messages: hi, n: 3, seed: 7, stream };
    const failed = await client.chat(body);
    const said = await failed.text();
    if (failed.status === 200) assert.ok(/"error"/.test(said) && !said.includes("[DONE]"), said);
    else assert.equal(failed.status, 502);
    assert.match(said, /no room/);
    await client.settled();
    failing = false;
    const again = await client.chat(body);
    assert.equal(again.status, 200);
    const text = await again.text();
    for (const sample of ["7", "8", "9"]) assert.match(text, new RegExp(`"content":"${sample}"`));
    assert.deepEqual(at.engine.requests.map(({ seed }) => seed).toSorted(), [7, 8, 8, 9]);
    const begun = await begunIn(client);
    const second = begun.find(({ retry_of }) => retry_of !== null) ?? assert.fail("no retry");
    assert.deepEqual(second.native.choice, { index: 1, of: 3 });
    const { calls } = await client.trajectory();
    assert.deepEqual(calls.map(({ outcome }) => outcome).toSorted(), ["delivered", "delivered", "delivered", "failed"]);
  });

test("a stream in which one sample breaks off ends with the error, and not as if it were whole", async () => {
  const answered = Promise.withResolvers<void>();
  await using at = await proxyAt((request) =>
    request.seed === 1 ? { text: "one" } : { text: "broken", cutAfter: 3, before: answered.promise },
  );
  const client = await at.open({ relay: "live" });
  const response = await client.chat({ messages: hi, n: 2, seed: 1, stream: true });
  const reader = (response.body ?? assert.fail("no body")).pipeThrough(new TextDecoderStream()).getReader();
  let heard = "";
  while (!heard.includes('"finish_reason":"stop"')) heard += (await reader.read()).value ?? assert.fail(heard);
  answered.resolve();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) heard += piece.value;
  assert.match(heard, /"content":"one"/);
  assert.match(heard, /"error"/);
  assert.doesNotMatch(heard, /\[DONE\]/);
});

test("more samples than a request or a session may have are refused before one is begun", async () => {
  await using at = await proxyAt(echo);
  const client = await at.open({ sandboxed: true, budgets: { max_concurrent_calls: 2 } });
  const refused = async (path: string, body: object): Promise<string> => {
    const response = await client.post(path, { model: "any", ...body });
    return `${response.status} ${((await response.json()) as { error: { message: string } }).error.message}`;
  };
  assert.match(await refused("/v1/chat/completions", { messages: hi, n: 129 }), /^400 n: asks for 129 answers; at most 128/);
  assert.match(await refused("/v1/chat/completions", { messages: hi, n: 0 }), /^400 n: /);
  assert.match(await refused("/v1/completions", { prompt: Array.from({ length: 129 }, () => "a") }), /^400 prompt: asks for 129/);
  assert.match(await refused("/v1/chat/completions", { messages: hi, n: 3 }), /max_concurrent_calls: 3 of 2/);
  const google = { contents: [{ role: "user", parts: [{ text: "hi" }] }], generationConfig: { candidateCount: 9 } };
  assert.match(await refused("/v1beta/models/any:generateContent", google), /^400 generationConfig\.candidateCount: /);
  assert.deepEqual(await begunIn(client), []);
  assert.equal((await client.chat({ messages: hi, n: 2 })).status, 200);
  assert.equal((await client.trajectory()).calls.length, 2);
});

test("each sample is charged to the budgets: the request fails at the first that is too much, and what was sampled stays on the record", async () => {
  await using at = await proxyAt(echo);
  const client = await at.open({ sandboxed: true, budgets: { max_turns: 2 } });
  const response = await client.chat({ messages: hi, n: 4 });
  assert.match(await response.text(), /max_turns: 2 of 2/);
  assert.notEqual(response.status, 200);
  await until(async () => (await client.entries()).filter(({ type }) => type === "call_finished").length === 2);
  const { calls } = await client.trajectory();
  assert.deepEqual(
    calls.map(({ usage }) => (usage?.sampled_tokens ?? 0) > 0),
    [true, true],
  );
  const refused = (await client.entries()).filter((entry) => entry.type === "refused");
  assert.deepEqual(
    refused.map(({ error }) => error.budget),
    ["max_turns"],
  );
});
