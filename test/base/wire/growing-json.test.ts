import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { GrowingJson } from "../../../base/wire/growing-json.ts";
import { parseJson } from "../../../base/wire/json.ts";
import { valuesIn } from "../../../base/wire/json-text.ts";

/** So long that it is worth while to look at what went before. */
const padding = { role: "system", content: "é".repeat(10_000) };
const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 30 }),
  fc.constantFrom('"', "\\", '\\"', "]}", '},{"', "messages", "日本", "\u2028"),
);
const Item = fc.oneof(
  fc.record({ role: fc.constantFrom("user", "assistant"), content: text }, { noNullPrototype: true }),
  fc.object({ maxDepth: 3, key: text }),
  // No object: from there on nothing is taken over.
  fc.constantFrom<unknown>(null, 7, "text", []),
);
const Body = fc.record(
  { messages: fc.array(Item, { maxLength: 6 }), model: text, tools: fc.array(fc.object()) },
  { noNullPrototype: true },
);
const Spacing = fc.constantFrom(undefined, 1, "\t");

const bytesOf = (body: object, spacing?: string | number): Buffer => Buffer.from(JSON.stringify(body, null, spacing));

function assertSame(reader: GrowingJson, bytes: Buffer): void {
  const brought = reader.broughtBy(bytes, "messages");
  assert.equal(brought.allValues, valuesIn(bytes));
  assert.ok(brought.bytes >= bytes.length - reader.longest);
  const grown = reader.parse(bytes, "messages", undefined, brought.allValues);
  const whole = parseJson(bytes);
  assert.deepEqual(grown, whole);
  assert.equal(JSON.stringify(grown), JSON.stringify(whole), "the order of keys too");
}

test("a conversation that grows, is cut, is edited or is another one is read as if nothing had gone before", () => {
  fc.assert(
    fc.property(
      Body,
      Spacing,
      fc.array(fc.tuple(fc.nat(8), fc.array(Item, { maxLength: 3 }), fc.boolean()), { maxLength: 6 }),
      (body, spacing, turns) => {
        const reader = new GrowingJson();
        let messages: unknown[] = [padding, ...body.messages];
        assertSame(reader, bytesOf({ model: body.model, messages, tools: body.tools }, spacing));
        for (const [kept, added, isFirst] of turns) {
          messages = [...messages.slice(0, Math.max(1, messages.length - kept)), ...added];
          assertSame(reader, bytesOf(isFirst ? { messages, tools: body.tools, stream: true } : { ...body, messages }, spacing));
          assertSame(reader, bytesOf({ model: body.model, messages, tools: body.tools }, spacing));
        }
      },
    ),
  );
});

test("any bytes changed at any place are read, or refused, as they would be alone", () => {
  const before = bytesOf({
    model: "m",
    messages: [padding, { role: "user", content: "a" }, { role: "assistant", content: "b" }],
    tools: [{ a: [1] }],
  });
  const after = bytesOf({
    model: "m",
    messages: [padding, { role: "user", content: "a" }, { role: "assistant", content: "b" }, { n: 1 }],
    tools: [{ a: [1] }],
  });
  const interesting = [...'{}[]",:\\ 0n'].map((one) => one.charCodeAt(0));
  // What lies within the padding is all alike.
  const at = fc.oneof(fc.nat(80), fc.integer({ min: 20_030, max: after.length - 1 }));
  fc.assert(
    fc.property(fc.array(fc.tuple(at, fc.constantFrom(...interesting)), { minLength: 1, maxLength: 4 }), fc.nat(3), (edits, cut) => {
      const bytes = Buffer.from(after.subarray(0, after.length - cut));
      for (const [place, byte] of edits) if (place < bytes.length) bytes[place] = byte;
      const reader = new GrowingJson();
      reader.parse(before, "messages");
      const read = (parse: () => unknown): unknown => {
        try {
          return { value: parse() };
        } catch (error) {
          return { error: (error as Error).message };
        }
      };
      assert.deepEqual(
        read(() => reader.parse(bytes, "messages")),
        read(() => parseJson(bytes)),
      );
    }),
    { numRuns: 3_000 },
  );
});

test("what was there before is taken over as it was, also by the turns of two agents that take turns", () => {
  const reader = new GrowingJson();
  const items = (body: unknown): unknown[] => (body as { messages: unknown[] }).messages;
  const main = [padding, { role: "user", content: "main" }];
  const sub = [padding, { role: "user", content: "sub" }];
  const first = items(reader.parse(bytesOf({ messages: main }), "messages"));
  items(reader.parse(bytesOf({ messages: sub }), "messages"));
  const second = items(reader.parse(bytesOf({ messages: [...main, { role: "assistant", content: "x" }] }), "messages"));
  assert.ok(second[0] === first[0] && second[1] === first[1], "the very objects");
  const third = items(reader.parse(bytesOf({ messages: [...main, { role: "assistant", content: "y" }] }), "messages"));
  assert.ok(third[1] === first[1] && third[2] !== second[2]);
  assert.deepEqual(third[2], { role: "assistant", content: "y" });
});

test("a list that is named twice is never put together", () => {
  const reader = new GrowingJson();
  const twice = (last: string): Buffer => Buffer.from(`{"messages":[${JSON.stringify(padding)},{"a":1}],"x":1,${last}}`);
  for (const again of ['"messages":[{"b":1}]', '"messages":[]', '"messages":null']) {
    for (const last of [again, again.replace("e", "\\u0065")]) {
      assertSame(reader, twice(last));
      assertSame(reader, twice('"y":1'));
      assertSame(reader, twice(last));
    }
  }
});

test("a comma behind the last item is refused, also where all the items are known", () => {
  const reader = new GrowingJson();
  const items = JSON.stringify([padding, { a: 1 }]).slice(1, -1);
  reader.parse(Buffer.from(`{"messages":[${items}]}`), "messages");
  assert.throws(() => reader.parse(Buffer.from(`{"messages":[${items},]}`), "messages"), /not JSON/);
});

test("what a body shares with an earlier one, in front and behind, is not new", () => {
  const reader = new GrowingJson();
  const messages: unknown[] = [padding];
  const tools = Array.from({ length: 100 }, (_, index) => ({ name: `f${index}` }));
  const body = (): Buffer => bytesOf({ model: "m", messages, system: `head ${messages.length}`, tools });
  assert.equal(reader.broughtBy(body(), "messages").bytes, body().length);
  for (let turn = 0; turn < 20; turn++) {
    reader.parse(body(), "messages");
    assert.equal(reader.broughtBy(body(), "messages").bytes, 0);
    messages.push({ role: "user", content: `turn ${turn}` });
    const { bytes, values, allValues } = reader.broughtBy(body(), "messages");
    assert.ok(bytes < 100 && values < 12, `${bytes} bytes and ${values} values in turn ${turn}`);
    assert.equal(allValues, valuesIn(body()));
  }
});
