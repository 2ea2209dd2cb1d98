import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readExactly } from "../../../base/schema/exact-json.ts";
import { readJson } from "../../../base/schema/read-json.ts";
import { parseAsWritten } from "../../../base/wire/written-numbers.ts";

const key = fc.oneof(fc.constantFrom("\\", '"', "\n", "\t", '\\"', "a", "a\\", 'a"', "", "b", "1", "__proto__"), fc.string());
const { value: anyValue } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.oneof(fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean(), fc.constant(null)),
    fc.dictionary(key, tie("value"), { maxKeys: 5 }),
    fc.array(tie("value"), { maxLength: 4 }),
  ),
}));
/** Laid out with spaces too. */
const text = fc.tuple(anyValue, fc.constantFrom(undefined, 1, "\t")).map(([value, space]) => JSON.stringify(value, null, space));

test("each key is read as it is written, whatever keys were read before it", () => {
  // What the runtime's parser takes the following keys for.
  readJson(String.raw`[{"\\":1},{"a":1,"\\":2},{"a\\":1}]`);
  for (const written of [String.raw`{"\n":1}`, String.raw`{"a":1,"\"":2}`, String.raw`[{"\t":1,"\\":2},{"a\"":1}]`])
    assert.equal(JSON.stringify(readJson(written)), written);
  fc.assert(
    fc.property(text, (written) => {
      const compact = JSON.stringify(readExactly(written));
      assert.equal(compact, JSON.stringify(readJson(written)));
      assert.equal(compact, JSON.stringify(parseAsWritten(written)));
      const space = /^[[{]\n(\s)/.exec(written)?.[1];
      assert.equal(JSON.stringify(readJson(written), null, space), written);
    }),
    { numRuns: 500 },
  );
});

test("the exact reader makes what the runtime's parser makes: duplicate keys, __proto__, numbers, words, depth", () => {
  for (const written of [
    '{"a":1,"b":2,"a":3}',
    '{"__proto__":{"x":1}}',
    "[-0,1e3,0.5,true,false,null]",
    ' { "2" : [ ] , "1" : { } } ',
    '"a\\u0041\\\\"',
    "7",
  ])
    assert.deepEqual(readExactly(written), JSON.parse(written), written);
  const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
  assert.doesNotThrow(() => readExactly(deep));
  assert.equal(JSON.stringify(readExactly("[1.0]", (source) => source)), '["1.0"]');
});
