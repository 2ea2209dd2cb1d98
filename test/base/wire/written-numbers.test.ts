import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readJson } from "../../../base/schema/read-json.ts";
import { GrowingJson } from "../../../base/wire/growing-json.ts";
import { parseJson } from "../../../base/wire/json.ts";

const verbatim = { field: "messages", keys: ["input", "args"] };
const bytes = (text: string): Buffer => Buffer.from(text);
const read = (text: string): { messages: Record<string, unknown>[] } & Record<string, unknown> =>
  parseJson(bytes(text), { verbatim }) as { messages: Record<string, unknown>[] };

const Digits = fc.stringMatching(/^(0|[1-9][0-9]{0,24})$/);
/** Any number that JSON can write. */
const Written = fc
  .tuple(fc.constantFrom("", "-"), Digits, fc.stringMatching(/^(\.[0-9]{1,22})?$/), fc.stringMatching(/^([eE][+-]?[0-9]{1,3})?$/))
  .map((parts) => parts.join(""));

test("every number of what is only handed on is written again as it was read", () => {
  fc.assert(
    fc.property(Written, Written, (one, other) => {
      const text = `{"messages":[{"a":[{"input":{"n":${one},"list":[${other},{"n":${one}}]}}]},{"args":[${other}]}]}`;
      assert.equal(JSON.stringify(read(text)), text);
    }),
    { numRuns: 2_000 },
  );
});

test("all other numbers are numbers, and so is one that is no part of what is handed on", () => {
  const value = read('{"temperature":1.0,"input":{"n":1.0},"messages":[{"n":1.0,"input":2.0},{"input":{"n":1.0}}]}');
  assert.deepEqual([value.temperature, value.input, value.messages[0]], [1, { n: 1 }, { n: 1, input: 2 }]);
  assert.equal(JSON.stringify(value.messages[1]), '{"input":{"n":1.0}}');
});

test("without such a number, a body is the value that it was", () => {
  const text = '{"messages":[{"input":{"n":[1,-2.5,0,12345678901234],"text":"1.0, 1e5"}}]}';
  assert.deepEqual(read(text), readJson(text));
  assert.deepEqual(parseJson(bytes("[1.0]"), { verbatim }), [1]);
  assert.equal(parseJson(bytes("null"), { verbatim }), null);
});

test("keys that are there twice, or that objects have of their own, keep the number of the last", () => {
  for (const [text, wanted] of [
    ['{"a":1.0,"a":2}', '{"a":2}'],
    ['{"a":{"b":1.0},"a":{"b":5.00}}', '{"a":{"b":5.00}}'],
    ['{"__proto__":{"b":1.0}}', '{"__proto__":{"b":1.0}}'],
  ])
    assert.equal(JSON.stringify(read(`{"messages":[{"input":${text}}]}`).messages[0]), `{"input":${wanted}}`);
});

test("a conversation that grows keeps its numbers, and another dialect's are not taken for it", () => {
  const reader = new GrowingJson();
  const padding = `{"role":"system","content":"${"x".repeat(20_000)}"}`;
  const items = [padding, '{"input":{"n":1.0}}', '{"input":{"n":12345678901234567890}}', '{"n":1.0,"args":{"n":-0}}'];
  for (const keys of [verbatim.keys, ["args"], verbatim.keys])
    for (let count = 2; count <= items.length; count++) {
      const text = `{"model":"m","messages":[${items.slice(0, count).join(",")}],"top_p":1.0}`;
      const grown = reader.parse(bytes(text), "messages", keys);
      assert.equal(JSON.stringify(grown), JSON.stringify(parseJson(bytes(text), { verbatim: { field: "messages", keys } })));
    }
});
