/** Google's dialect through the whole proxy: its addresses, its two framings, and turns that come back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Content, GoogleGenAI } from "@google/genai";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

const hi: Content = { role: "user", parts: [{ text: "hi" }] };
const tools = [{ functionDeclarations: [{ name: "read", parametersJsonSchema: { type: "object" } }] }];

test("a calling mode that every object has as a property is a refused call, and the session goes on", async () => {
  await using at = await proxyAt(() => ({ text: "Done." }));
  const client = await at.open();
  const ask = (mode: string) =>
    client.post("/v1beta/models/any:generateContent", { contents: [hi], tools, toolConfig: { functionCallingConfig: { mode } } });
  for (const mode of ["constructor", "toString", "__proto__"]) {
    const refused = await ask(mode);
    assert.equal(refused.status, 400);
    const { error } = (await refused.json()) as { error: { status: string; message: string } };
    assert.deepEqual([error.status, error.message.includes("functionCallingConfig.mode")], ["INVALID_ARGUMENT", true]);
  }
  assert.equal((await ask("AUTO")).status, 200);
  const entries = await client.entries();
  assert.deepEqual(
    entries.filter((entry) => entry.type === "refused" || entry.type === "damaged").map((entry) => entry.type),
    ["refused", "refused", "refused"],
  );
  assert.equal((await client.trajectory()).calls.length, 1);
  assert.deepEqual(at.unseen, []);
});

test("a conversation over Google's SDK continues token for token, with and without ids", async () => {
  await using at = await proxyAt((request, index) =>
    index % 2 === 0 && !request.probe
      ? { reasoning: "hm", text: "I look.", tool_calls: [{ name: "read", arguments: '{ "a" : 1.0 }' }] }
      : { text: "Done." },
  );
  for (const keepsIds of [true, false])
    for (const stream of [true, false]) {
      const client = await at.open({ restore: "full" });
      const google = new GoogleGenAI({ apiKey: client.key, httpOptions: { baseUrl: at.proxy.url } });
      const ask = async (contents: Content[]): Promise<Content> => {
        const request = { model: "any", contents, config: { tools } };
        if (!stream) return (await google.models.generateContent(request)).candidates?.[0]?.content ?? assert.fail();
        const parts = [];
        for await (const piece of await google.models.generateContentStream(request))
          parts.push(...(piece.candidates?.[0]?.content?.parts ?? []));
        return { role: "model", parts };
      };
      const turn = await ask([hi]);
      const call = turn.parts?.find((part) => part.functionCall)?.functionCall ?? assert.fail("no call came");
      const response = { name: "read", response: { output: "text" }, ...(keepsIds && { id: call.id }) };
      if (!keepsIds) delete call.id;
      await ask([hi, turn, { role: "user", parts: [{ functionResponse: response }] }]);
      const { calls } = await client.trajectory();
      assert.deepEqual(
        calls.map((one) => one.match),
        ["root", "exact"],
      );
      assert.deepEqual(
        calls[1]?.restored.map((one) => [one.evidence, one.status]),
        [["tool_call_id", "restored"]],
      );
      const said = at.engine.requests.at(-1)?.messages.at(-1);
      assert.deepEqual(
        [said?.role, (said as { tool_call_id?: string } | undefined)?.tool_call_id],
        ["tool", "engine-tool-0"],
        "the engine gets its own id back",
      );
    }
  assert.deepEqual(at.unseen, []);
});

test("without alt=sse a stream is one JSON array, errors in the middle of it too", async () => {
  await using at = await proxyAt((_request, index) => (index === 0 ? { text: "Hello." } : { text: "Hello.", cutAfter: 2 }));
  const client = await at.open({ relay: "live" });
  const ask = () =>
    fetch(`${at.proxy.url}/v1beta/models/org/a:free:streamGenerateContent?key=${client.key}`, {
      method: "POST",
      body: JSON.stringify({ contents: [hi] }),
    });
  const response = await ask();
  assert.match(response.headers.get("content-type") ?? "", /^application\/json/);
  const pieces = (await response.json()) as {
    candidates: { content: { parts: { text?: string }[] }; finishReason?: string }[];
    modelVersion: string;
  }[];
  assert.equal(pieces.flatMap((piece) => piece.candidates[0]?.content.parts.map((part) => part.text) ?? []).join(""), "Hello.");
  assert.equal(pieces.at(-1)?.candidates[0]?.finishReason, "STOP");
  assert.equal(pieces[0]?.modelVersion, "org/a:free");
  const broken = (await (await ask()).json()) as { error?: { code: number; status: string } }[];
  assert.deepEqual([broken.at(-1)?.error?.code, broken.at(-1)?.error?.status], [502, "UNAVAILABLE"]);
});

test("Google's other addresses are answered and never recorded as calls", async () => {
  await using at = await proxyAt(() => ({ text: "never" }));
  const client = await at.open();
  const google = new GoogleGenAI({ apiKey: client.key, httpOptions: { baseUrl: at.proxy.url } });
  assert.ok(((await google.models.countTokens({ model: "m", contents: [hi] })).totalTokens ?? 0) > 0);
  const said = { role: "model", parts: [{ text: "Hello." }] };
  assert.ok(((await google.models.countTokens({ model: "m", contents: [hi, said] })).totalTokens ?? 0) > 0);
  const names = [];
  for await (const model of await google.models.list()) names.push(model.name);
  assert.deepEqual(names, ["models/scripted"]);
  assert.equal((await google.models.get({ model: "scripted" })).displayName, "scripted");
  await assert.rejects(google.models.get({ model: "other" }), { status: 404 });
  await assert.rejects(google.models.embedContent({ model: "m", contents: "x" }), { status: 404 });
  const wrong = new GoogleGenAI({ apiKey: "sk-unknown", httpOptions: { baseUrl: at.proxy.url } });
  await assert.rejects(wrong.models.generateContent({ model: "m", contents: [hi] }), { status: 401 });
  assert.deepEqual(
    (await client.entries()).map((entry) => entry.type),
    ["opened"],
  );
});

test("the key is found in the path, in a header and in the query, and in no log", async () => {
  await using at = await proxyAt(() => ({ text: "Hello." }));
  const client = await at.open();
  const ask = (path: string, headers: Record<string, string> = {}) =>
    fetch(at.proxy.url + path, { method: "POST", headers, body: JSON.stringify({ contents: [hi] }) });
  const answers = [
    await ask(`/s/${client.key}/v1beta/models/m:generateContent`),
    await ask("/v1/models/m:generateContent", { "x-goog-api-key": client.key }),
    await ask(`/v1beta/models/m:generateContent?key=${client.key}`),
    await ask("/v1beta/models/m:generateContent", { authorization: `Bearer ${client.key}` }),
  ];
  assert.deepEqual(
    answers.map((answer) => answer.status),
    [200, 200, 200, 200],
  );
  assert.ok(!JSON.stringify(await client.entries()).includes(client.key));
});
