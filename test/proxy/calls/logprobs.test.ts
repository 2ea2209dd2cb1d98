/** A client that asks for logprobs gets the engine's own, through the vendors' SDKs: streamed, whole, live, and from the record. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GoogleGenAI, type LogprobsResult } from "@google/genai";
import OpenAI from "openai";
import { encode, endOfTurn, logprobOf } from "../../fakes/engines/scripted-engine.ts";
import { until } from "../../fakes/machine/until.ts";
import { type Client, proxyAt } from "../../fakes/proxies/proxy-at.ts";

const said = "Grüße 😀";
const hi = [{ role: "user" as const, content: "hi" }];
const openaiOf = ({ proxy, key }: Client) => new OpenAI({ baseURL: `${proxy.url}/v1`, apiKey: key, maxRetries: 0 });

/** What every dialect says of a token, with the likeliest other. */
type Seen = { token: string; logprob: number | null | undefined; top: unknown };

const seenInChat = (entries: OpenAI.ChatCompletionTokenLogprob[]): Seen[] =>
  entries.map(({ token, logprob, bytes, top_logprobs }) => {
    assert.deepEqual(bytes, [...Buffer.from(token)]);
    return { token, logprob, top: top_logprobs.map((one) => [one.token, one.logprob]) };
  });

const seenInGoogle = (results: (LogprobsResult | undefined)[]): Seen[] =>
  results.flatMap((result) =>
    (result?.chosenCandidates ?? []).map(({ token = "", tokenId, logProbability }, at) => {
      assert.equal(tokenId, token === "⏹" ? endOfTurn : token.codePointAt(0));
      const top = result?.topCandidates?.[at]?.candidates?.map((one) => [one.token, one.logProbability]);
      return { token, logprob: logProbability, top };
    }),
  );

const seenInText = (pieces: (OpenAI.Completion | undefined)[]): Seen[] =>
  pieces.flatMap((piece) => {
    const { tokens = [], token_logprobs = [], top_logprobs } = piece?.choices[0]?.logprobs ?? {};
    return tokens.map((token, at) => {
      const { [token]: _, ...others } = top_logprobs?.[at] ?? {};
      return { token, logprob: token_logprobs[at], top: Object.entries(others) };
    });
  });

const asks: Record<string, (client: Client, stream: boolean) => Promise<Seen[]>> = {
  async chat(client, stream) {
    const body = { model: "any", messages: hi, logprobs: true, top_logprobs: 1 };
    if (!stream) return seenInChat((await openaiOf(client).chat.completions.create(body)).choices[0]?.logprobs?.content ?? []);
    return seenInChat((await openaiOf(client).chat.completions.stream(body).finalChatCompletion()).choices[0]?.logprobs?.content ?? []);
  },
  async responses(client, stream) {
    const include: ["message.output_text.logprobs"] = ["message.output_text.logprobs"];
    const body = { model: "any", input: "hi", include, top_logprobs: 1 };
    const { responses } = openaiOf(client);
    const response = stream ? await responses.stream(body).finalResponse() : await responses.create(body);
    const seenIn = ({ output }: Pick<OpenAI.Responses.Response, "output">): Seen[] => {
      const part = output.flatMap((item) => (item.type === "message" ? item.content : []))[0];
      return part?.type === "output_text" ? seenInChat(part.logprobs ?? []) : [];
    };
    assert.deepEqual(seenIn(await responses.retrieve(response.id)), seenIn(response));
    return seenIn(response);
  },
  async completions(client, stream) {
    const body = { model: "any", prompt: "hi", logprobs: 1 };
    const { completions } = openaiOf(client);
    const pieces = stream ? await Array.fromAsync(await completions.create({ ...body, stream })) : [await completions.create(body)];
    const offsets = pieces.flatMap((piece) => piece.choices[0]?.logprobs?.text_offset ?? []);
    const tokens = pieces.flatMap((piece) => piece.choices[0]?.logprobs?.tokens ?? []);
    assert.deepEqual(
      offsets,
      tokens.map((_, at) => tokens.slice(0, at).join("").length),
    );
    return seenInText(pieces);
  },
  async gemini(client, stream) {
    const google = new GoogleGenAI({ apiKey: client.key, httpOptions: { baseUrl: client.proxy.url } });
    const body = { model: "any", contents: "hi", config: { responseLogprobs: true, logprobs: 1 } };
    const { models } = google;
    const pieces = stream ? await Array.fromAsync(await models.generateContentStream(body)) : [await models.generateContent(body)];
    const average = pieces.at(-1)?.candidates?.[0]?.avgLogprobs ?? assert.fail("no average");
    const seen = seenInGoogle(pieces.map((piece) => piece.candidates?.[0]?.logprobsResult));
    assert.ok(Math.abs(average - seen.reduce((sum, { logprob }) => sum + (logprob ?? 0), 0) / seen.length) < 1e-9);
    return seen;
  },
};

for (const [name, ask] of Object.entries(asks))
  test(`logprobs that a client of ${name} asks for are the recorded ones, streamed or whole, live or buffered`, async () => {
    await using at = await proxyAt(() => ({ text: said }));
    for (const relay of ["buffered", "live"] as const)
      for (const stream of [true, false]) {
        const client = await at.open({ relay });
        const seen = await ask(client, stream);
        const { nodes } = await client.trajectory();
        const sampled = nodes.find(({ kind }) => kind === "sampled") ?? assert.fail("nothing was sampled");
        const shown = name === "responses" ? [...said] : [...said, "⏹"];
        assert.deepEqual(sampled.token_ids, [...encode(said), endOfTurn]);
        const expected = shown.map((token, index) => ({ token, logprob: sampled.logprobs?.[index], top: [["alternative 0", -1]] }));
        assert.deepEqual(seen, expected, `${relay} ${stream}`);
      }
    assert.deepEqual(at.unseen, []);
  });

test("an answer that is given again from the record has the same logprobs", async () => {
  const hold = Promise.withResolvers<void>();
  await using at = await proxyAt(() => ({ text: said, beforeEnd: hold.promise }));
  const client = await at.open();
  const leave = new AbortController();
  const body = { messages: hi, logprobs: true };
  const left = client.chat(body, leave.signal).catch(() => null);
  await until(() => at.engine.requests.length > 0);
  leave.abort();
  await left;
  await client.logged("answered");
  hold.resolve();
  await client.logged("call_finished");
  await client.settled();
  const again = (await (await client.chat(body)).json()) as OpenAI.ChatCompletion;
  const { tokens } = (await client.entries()).find((entry) => entry.type === "call_finished") ?? assert.fail("not recorded");
  assert.equal(at.engine.requests.length, 1);
  assert.equal(tokens?.length, [...said].length + 1);
  assert.deepEqual(
    again.choices[0]?.logprobs?.content?.map(({ token, logprob }) => [token, logprob]),
    tokens?.map(({ text, logprob }) => [text, logprob]),
  );
  // An answer that was not asked for them has none to show, so the same question is another call then.
  const other = (await (await client.chat({ messages: hi })).json()) as OpenAI.ChatCompletion;
  assert.equal(other.choices[0]?.logprobs, null);
  assert.equal(at.engine.requests.length, 2);
});

test("a text of a response has its own tokens' logprobs, and not those of reasoning and calls", async () => {
  await using at = await proxyAt(() => ({ reasoning: "Grüße", text: "Grüße", tool_calls: [{ name: "f", arguments: "{}" }] }));
  const client = await at.open();
  const tools = [{ type: "function", name: "f", parameters: { type: "object" } }];
  const include = ["message.output_text.logprobs"];
  const asked = await client.post("/v1/responses", { model: "any", input: "hi", include, tools });
  const { output } = (await asked.json()) as OpenAI.Responses.Response;
  const [part] = output.flatMap((item) => (item.type === "message" ? item.content : []));
  const prompt = (await client.trajectory()).calls[0]?.prompt_length ?? assert.fail("no prompt");
  // The first text that the tokens spell is the reasoning's; it is taken before the message begins.
  const at0 = "(Grüße)".length;
  assert.deepEqual(
    part?.type === "output_text" && part.logprobs?.map(({ logprob }) => logprob),
    encode("Grüße").map((id, index) => logprobOf(id, prompt + at0 + index)),
  );
});

test("a sandboxed client gets logprobs with few alternatives", async () => {
  await using at = await proxyAt(() => ({ text: said }));
  const client = await at.open({ sandboxed: true });
  const statusOf = async (top_logprobs: number) => (await client.chat({ messages: hi, logprobs: true, top_logprobs })).status;
  assert.deepEqual([await statusOf(5), await statusOf(6)], [200, 400]);
});

test("logprobs that cannot be given are refused in a sentence", async () => {
  await using at = await proxyAt(() => ({ text: said, quirk: "no_logprobs" }));
  const client = await at.open({ purpose: "eval" });
  const refused = async (path: string, body: object): Promise<string> => {
    const response = await client.post(path, { model: "any", ...body });
    assert.equal(response.status, 400);
    return ((await response.json()) as { error: { message: string } }).error.message;
  };
  assert.match(await refused("/v1/chat/completions", { messages: hi, logprobs: true }), /^logprobs: the engine vllm gives none/);
  assert.match(await refused("/v1/chat/completions", { messages: hi, top_logprobs: 2 }), /^top_logprobs: .*`logprobs: true`/);
  assert.match(await refused("/v1/chat/completions", { messages: hi, logprobs: true, top_logprobs: 21 }), /^top_logprobs: /);
  assert.match(await refused("/v1/completions", { prompt: "hi", logprobs: 1 }), /^logprobs: the engine/);
  assert.match(await refused("/v1/completions", { prompt: "hi", prompt_logprobs: 1 }), /^prompt_logprobs: /);
  assert.match(await refused("/v1/responses", { input: "hi", top_logprobs: 2 }), /^top_logprobs: .*include/);
  const google = { contents: [{ role: "user", parts: [{ text: "hi" }] }], generationConfig: { logprobs: 2 } };
  assert.match(await refused("/v1beta/models/any:generateContent", google), /^generationConfig\.logprobs: .*responseLogprobs/);
});
