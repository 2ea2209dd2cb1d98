/**
 * Random turns, sampled by an engine, said by each dialect and sent back by a client that copies what it got: the next
 * call must hold the very turn that was sampled, malformed arguments and odd spacing included, and call it unedited.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Part } from "../../base/schema/message.ts";
import { dialects } from "../../proxy/dialects/registry.ts";
import type { ScriptedReply } from "../fakes/engines/scripted-engine.ts";
import { proxyAt } from "../fakes/proxies/proxy-at.ts";

type Body = Record<string, unknown>;
type Way = {
  path: string;
  first: Body;
  /** The next request, from the answer's whole body. */
  next(answer: Body): Body;
};

const schema = { type: "object" };
const call = (name: string) => ({ name, parameters: schema });
const hi = { role: "user", content: "hi" };
const names = ["read", "apply_patch", "shell"];

const ways: Record<string, Way | null> = {
  "openai-chat": {
    path: "/v1/chat/completions",
    first: { messages: [hi], tools: names.map((name) => ({ type: "function", function: call(name) })) },
    next: (answer) => ({ messages: [hi, (answer.choices as { message: unknown }[])[0]?.message, hi] }),
  },
  "openai-responses": {
    path: "/v1/responses",
    first: { input: [hi], tools: [{ type: "function", ...call("read") }, { type: "custom", name: "apply_patch" }, { type: "shell" }] },
    next: (answer) => ({ input: [hi, ...(answer.output as unknown[]), hi] }),
  },
  "anthropic-messages": {
    path: "/v1/messages",
    first: { messages: [hi], max_tokens: 9, tools: names.map((name) => ({ name, input_schema: schema })) },
    next: (answer) => ({ messages: [hi, { role: "assistant", content: answer.content }, hi] }),
  },
  "google-generate-content": {
    path: "/v1beta/models/m:generateContent",
    first: {
      contents: [{ role: "user", parts: [{ text: "hi" }] }],
      tools: [{ functionDeclarations: names.map(call) }],
      generationConfig: { thinkingConfig: { includeThoughts: true } },
    },
    next: (answer) => ({
      contents: [
        { role: "user", parts: [{ text: "hi" }] },
        (answer.candidates as { content: unknown }[])[0]?.content,
        { role: "user", parts: [{ text: "hi" }] },
      ],
    }),
  },
  // A prompt is text, and what was said before is part of it: there are no turns to send back.
  "openai-completions": null,
};

const text = fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 });
const spacing = fc.constantFrom("", " ", "\n  ");
const object = fc.tuple(fc.dictionary(text, fc.oneof(text, fc.integer(), fc.boolean()), { maxKeys: 3 }), spacing);
const spaced = object.map(([value, space]) => JSON.stringify(value, null, space.length).replace(/^\{/, `{${space}`));
const malformed = text.map((value) => `{"path": "${value.replaceAll('"', "")}`);
const toolCall = fc.record({
  name: fc.constantFrom(...names),
  arguments: fc.oneof(
    { weight: 4, arbitrary: spaced },
    malformed,
    fc.constantFrom("[1]", '{"commands":["ls"]}', '{"input": "*** Begin"}', '{"n": 1.0}'),
  ),
});
const reply: fc.Arbitrary<ScriptedReply> = fc.record(
  {
    text: fc.oneof(text, fc.constantFrom("\n\n", " Done. ")),
    reasoning: fc.oneof(text, fc.constant("\n think \n")),
    tool_calls: fc.array(toolCall, { minLength: 1, maxLength: 3 }),
  },
  { requiredKeys: [] },
);

for (const dialect of dialects) {
  const way = ways[dialect.name];
  assert.notEqual(way, undefined, `${dialect.name} does not say how its turns are sent back: add it`);
  if (!way) continue;
  test(`${dialect.name} brings every turn back as it was sampled`, { timeout: 300_000 }, async () => {
    let sampled: ScriptedReply = {};
    await using at = await proxyAt((_, index) => (index % 2 === 0 ? sampled : { text: "End." }));
    await fc.assert(
      fc.asyncProperty(reply, async (turn) => {
        sampled = turn;
        const client = await at.open();
        const ask = async (body: Body) => {
          const response = await client.post(way.path, { model: "m", ...way.first, ...body });
          const answer = (await response.json()) as Body;
          assert.equal(response.status, 200, JSON.stringify(answer));
          return answer;
        };
        await ask(way.next(await ask({})));
        const [first, second] = at.proxy.session(client.sessionId).calls();
        const said = first?.turn?.message.parts ?? [];
        const back = second?.messages.find((message) => message.role === "assistant")?.parts ?? [];
        assert.deepEqual(back.map(bare), said.map(bare));
        for (const { status } of second?.begun.restored ?? []) assert.notEqual(status, "edited");
      }),
      { numRuns: 60 },
    );
    assert.deepEqual(at.unseen, []);
  });
}

/** A carrier comes with reasoning that did not need to be restored. */
function bare(part: Part): unknown {
  return part.type === "reasoning" ? part.text : part;
}
