/** What an SDK asks for beside free text: tool choices, response formats and schemas, on the practice engine. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import fc from "fast-check";
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { FormStates } from "../../practice/grammar/form.ts";
import { schemaForm } from "../../practice/grammar/schema-form.ts";
import { PracticeModel } from "../../practice/model/practice-model.ts";
import { createPracticeServer } from "../../practice/server.ts";

let server: Server;
let client: OpenAI;
const messages = [{ role: "user" as const, content: "Go." }];

before(async () => {
  server = createPracticeServer(new PracticeModel({ name: "practice", seed: 1, maxModelLen: 4096 }));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  client = new OpenAI({ baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, apiKey: "none", maxRetries: 0 });
});

after(() => {
  server.closeAllConnections();
  server.close();
});

const Step = z.strictObject({
  tool: z.enum(["read", "write"]),
  line: z.int(),
  share: z.number(),
  done: z.boolean(),
  notes: z.array(z.string()),
});

test("a response format of a schema is answered with a value of it, whatever the seed", async () => {
  for (const seed of [1, 2, 3]) {
    const answer = await client.chat.completions.parse({
      model: "practice",
      messages,
      seed,
      response_format: zodResponseFormat(z.strictObject({ steps: z.array(Step), last: Step.nullable() }), "plan"),
    });
    const [choice] = answer.choices;
    assert.equal(choice?.finish_reason, "stop");
    assert.ok(choice?.message.parsed, choice?.message.content ?? "");
  }
});

test("a JSON object is answered with one", async () => {
  const answer = await client.chat.completions.create({ model: "practice", messages, response_format: { type: "json_object" } });
  const text = answer.choices[0]?.message.content ?? "";
  assert.equal(typeof JSON.parse(text), "object", text);
});

const tools = ["look", "move"].map((name) => ({
  type: "function" as const,
  function: {
    name,
    parameters: { type: "object", properties: { place: { enum: [`${name}-here`, `${name}-there`] } }, required: ["place"] },
  },
}));

test("a required call is made, a named one is the one that is named, and a stream says the same", async () => {
  const required = await client.chat.completions.create({ model: "practice", messages, tools, tool_choice: "required" });
  assert.equal(required.choices[0]?.message.tool_calls?.length, 1);
  const tool_choice = { type: "function" as const, function: { name: "move" } };
  const stream = client.chat.completions.stream({ model: "practice", messages, tools, tool_choice, seed: 5 });
  const [call] = (await stream.finalChatCompletion()).choices[0]?.message.tool_calls ?? [];
  assert.ok(call?.type === "function");
  assert.equal(call.function.name, "move");
  assert.match(call.function.arguments, /^\{"place":"move-(here|there)"\}$/);
});

test("a tool without parameters may be listed, and called with none", async () => {
  const bare = [{ type: "function" as const, function: { name: "wait" } }];
  for (const tool_choice of ["auto", "required"] as const) {
    const answer = await client.chat.completions.create({ model: "practice", messages, tools: bare, tool_choice, max_tokens: 60 });
    assert.ok(answer.choices[0]);
  }
});

test("what cannot be held is refused by its name and not ignored", async () => {
  const asked = (schema: object) =>
    client.chat.completions.create({ model: "practice", messages, structured_outputs: { json: schema } } as never);
  await assert.rejects(asked({ type: "string", pattern: "a+" }), /keyword pattern/);
  await assert.rejects(asked({ $ref: "#/$defs/Gone" }), /"#\/\$defs\/Gone" is not in the schema/);
  await assert.rejects(
    asked({ $defs: { Self: { type: "array", items: { $ref: "#/$defs/Self" } } }, $ref: "#/$defs/Self" }),
    /contains itself/,
  );
  await assert.rejects(asked({ type: "integer", minimum: 17 }), /no integer from 17 to Infinity/);
  await assert.rejects(asked({ type: "array", minItems: 2_000 }), /2000 is more than the practice engine makes/);
  await assert.rejects(asked({ type: "constructor" }), /"constructor" is not known/);
  const none = client.chat.completions.create({ model: "practice", messages, tool_choice: "required" });
  await assert.rejects(none, /there are no tools/);
});

/** Schemas, each with values that it has, in the order of its properties. */
const schemas: fc.Arbitrary<[schema: object, value: unknown]> = fc.letrec<{ any: [object, unknown] }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<[object, unknown]>(
      [{ type: "boolean" }, true],
      [{ type: "null" }, null],
      [{ enum: ["é", 1] }, "é"],
      [{ const: '"' }, '"'],
    ),
    fc.integer({ min: -99_999, max: 99_999 }).map((value): [object, unknown] => [{ type: "integer" }, value]),
    fc
      .string({ unit: fc.constantFrom("a", "Z", " ", "7", "{"), maxLength: 20 })
      .map((value): [object, unknown] => [{ type: "string" }, value]),
    tie("any").map(([items, value]): [object, unknown] => [{ type: "array", items, minItems: 2 }, [value, value]]),
    fc
      .dictionary(fc.constantFrom("a", "b", "__proto__", "x y"), tie("any"), { maxKeys: 3 })
      .map((members): [object, unknown] => [
        { type: "object", additionalProperties: false, properties: own(members, ([schema]) => schema) },
        own(members, ([, value]) => value),
      ]),
  ),
})).any;

/** Also a key such as `__proto__` is the object's own. */
function own<T>(members: Record<string, T>, of: (member: T) => unknown): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).map(([name, member]) => [name, of(member)]));
}

test("a schema's form takes its values, and neither their beginnings nor more than them", () => {
  fc.assert(
    fc.property(schemas, ([schema, value]) => {
      const text = Buffer.from(JSON.stringify(value));
      const states = new FormStates(schemaForm(schema, "schema"));
      let at = states.start;
      for (const byte of text) {
        assert.ok(!states.isEnd(at) || Number.isInteger(value), `ends before ${String.fromCharCode(byte)} of ${text}`);
        at = states.step(at, byte);
      }
      assert.ok(states.isEnd(at), `${JSON.stringify(schema)} does not take ${text}`);
      assert.deepEqual(states.step(at, "}".charCodeAt(0)), []);
    }),
  );
});
