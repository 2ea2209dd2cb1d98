/** Legacy completions through the whole proxy: the prompt reaches the engine as it stands, and is on the record. */
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { decode, encode } from "../../fakes/engines/scripted-engine.ts";
import { proxyAt } from "../../fakes/proxies/proxy-at.ts";

test("a prompt of text or of ids reaches the engine as it stands, and what follows continues token for token", async () => {
  await using at = await proxyAt((_request, index) => ({ text: `answer ${index}` }));
  for (const form of ["text", "ids"] as const)
    for (const stream of [true, false]) {
      const client = await at.open();
      const openai = new OpenAI({ baseURL: `${at.proxy.url}/v1`, apiKey: client.key });
      const ask = async (ids: number[]): Promise<string> => {
        const body = { model: "any", prompt: form === "ids" ? ids : decode(ids), max_tokens: 50, logprobs: 1, stop: "Observation:" };
        if (!stream) return (await openai.completions.create(body)).choices[0]?.text ?? "";
        let text = "";
        for await (const piece of await openai.completions.create({ ...body, stream })) text += piece.choices[0]?.text ?? "";
        return text;
      };
      const first = await ask(encode("Question: 1\nThought:"));
      assert.match(first, /^answer \d+$/);
      const asked = at.engine.requests.at(-1);
      assert.deepEqual(asked?.prompt, form === "ids" ? encode("Question: 1\nThought:") : "Question: 1\nThought:");
      assert.deepEqual(
        [asked?.messages, asked?.max_tokens, asked?.stop, asked?.return_token_ids, asked?.logprobs],
        [undefined, 50, ["Observation:"], true, 1],
      );
      // As a program goes on that keeps the ids: with the stop token too.
      const { nodes, calls } = await client.trajectory();
      const sampled = nodes.find((node) => node.kind === "sampled");
      assert.deepEqual(sampled?.token_ids, [...encode(first), 1]);
      assert.ok(sampled?.logprobs?.every((one) => one !== null && one < 0));
      assert.equal(sampled?.reason, "temperature_unknown", "nothing but its temperature is unknown");
      assert.equal(calls[0]?.missing, null);
      if (form === "text") continue;
      await ask([...encode("Question: 1\nThought:"), ...(sampled?.token_ids ?? []), ...encode("\nObservation: 2\n")]);
      assert.deepEqual(
        (await client.trajectory()).calls.map((call) => call.match),
        ["root", "exact"],
      );
    }
  assert.deepEqual(at.unseen, []);
});

test("the prompt is on the record, and is what makes two calls the same", async () => {
  let failing = true;
  await using at = await proxyAt((request) =>
    failing && request.prompt === "a" ? { refuse: { status: 500, message: "no" } } : { text: "b" },
  );
  const client = await at.open();
  const ask = (prompt: string) => client.post("/v1/completions", { model: "any", prompt });
  assert.equal((await ask("a")).status, 502);
  failing = false;
  assert.equal((await ask("c")).status, 200);
  assert.equal((await ask("a")).status, 200);
  await client.settled();
  const begun = (await client.entries()).flatMap((entry) => (entry.type === "call_begun" ? [entry] : []));
  assert.deepEqual(
    begun.map((entry) => entry.prompt),
    [{ text: "a" }, { text: "c" }, { text: "a" }],
  );
  assert.deepEqual(
    begun.map((entry) => entry.retry_of),
    [null, null, begun[0]?.call_id],
  );
  assert.deepEqual(begun[0]?.messages, { base_call_id: null, base_len: 0, new: [] });
});

test("a token id that no tokenizer has is a 400, and not the engine's failure", async () => {
  await using at = await proxyAt(() => ({ text: "hello" }));
  const client = await at.open({ sandboxed: true });
  for (const id of [2 ** 31, -1, 1.5])
    assert.equal((await client.post("/v1/completions", { model: "m", prompt: [79, id] })).status, 400, String(id));
  assert.equal((await client.post("/v1/completions", { model: "m", prompt: [79, 110] })).status, 200);
  assert.equal(at.engine.requests.length, 1);
});
