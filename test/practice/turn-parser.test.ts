import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { StopStrings } from "../../practice/stop-strings.ts";
import { renderChat } from "../../practice/template.ts";
import { readToolCall } from "../../practice/tool-call.ts";
import { type TurnDelta, TurnParser } from "../../practice/turn-parser.ts";

const call = (name: string, text: string) => `<tool_call>\n{"name": "${name}", "arguments": ${text}}\n</tool_call>`;

function parse(pieces: string[], tools = true): TurnDelta[] {
  const parser = new TurnParser({ tools });
  return joined([...pieces.flatMap((piece) => parser.feed(piece)), ...parser.finish()]);
}

/** Neighbours of one kind count as one: how a text was cut into deltas says nothing. */
function joined(deltas: TurnDelta[]): TurnDelta[] {
  const result: TurnDelta[] = [];
  for (const delta of deltas) {
    const last = result.at(-1);
    if (delta.type !== "tool_call" && last?.type === delta.type)
      result[result.length - 1] = { type: delta.type, text: last.text + delta.text };
    else result.push(delta);
  }
  return result;
}

const turns: [title: string, text: string, deltas: TurnDelta[]][] = [
  ["plain text", "All is well.\n", [{ type: "content", text: "All is well.\n" }]],
  ["nothing", "", []],
  ["a call", call("bash", '{"command": "ls"}'), [{ type: "tool_call", name: "bash", arguments: '{"command": "ls"}' }]],
  [
    "text before a call",
    `Look.\n${call("bash", "{}")}`,
    [
      { type: "content", text: "Look." },
      { type: "tool_call", name: "bash", arguments: "{}" },
    ],
  ],
  [
    "parallel calls",
    `${call("a", '{"x":1}')}\n${call("b", '{ "y" : [2] }')}\n`,
    [
      { type: "tool_call", name: "a", arguments: '{"x":1}' },
      { type: "tool_call", name: "b", arguments: '{ "y" : [2] }' },
    ],
  ],
  [
    "text after a call",
    `${call("a", "{}")}\nDone.`,
    [
      { type: "tool_call", name: "a", arguments: "{}" },
      { type: "content", text: "\nDone." },
    ],
  ],
  [
    "reasoning",
    `<think>\nHm.\nYes.\n</think>\n\nOk.\n${call("a", "{}")}`,
    [
      { type: "reasoning", text: "Hm.\nYes." },
      { type: "content", text: "Ok." },
      { type: "tool_call", name: "a", arguments: "{}" },
    ],
  ],
  ["reasoning without an end", "<think>\nHm.", [{ type: "reasoning", text: "Hm." }]],
  ["a tag that is none", "a < b <tool_c", [{ type: "content", text: "a < b <tool_c" }]],
  [
    "arguments that are no JSON stay text",
    `Look.\n${call("bash", "{bad}")}`,
    [{ type: "content", text: `Look.\n${call("bash", "{bad}")}` }],
  ],
  [
    "a bad call after a good one stays text",
    `${call("a", "{}")}\n\n${call("b", "{")} x`,
    [
      { type: "tool_call", name: "a", arguments: "{}" },
      { type: "content", text: `\n\n${call("b", "{")} x` },
    ],
  ],
  ["arguments that are no object stay as they are", call("a", '"ls"'), [{ type: "tool_call", name: "a", arguments: '"ls"' }]],
  [
    "a call without arguments stays text",
    '<tool_call>{"name": "a"}</tool_call>',
    [{ type: "content", text: '<tool_call>{"name": "a"}</tool_call>' }],
  ],
  ["a call cut off stays text", '<tool_call>\n{"name": "a", "argu', [{ type: "content", text: '<tool_call>\n{"name": "a", "argu' }]],
  [
    "a whole call without its end is one",
    '<tool_call>\n{"name": "a", "arguments": {}}',
    [{ type: "tool_call", name: "a", arguments: "{}" }],
  ],
];

for (const [title, text, deltas] of turns) {
  test(`${title} is read the same however it is cut`, () => {
    assert.deepEqual(parse([text]), deltas);
    assert.deepEqual(parse([...text]), deltas);
    fc.assert(
      fc.property(fc.array(fc.nat({ max: text.length }), { maxLength: 6 }), (cuts) => {
        const at = [0, ...cuts.sort((one, other) => one - other), text.length];
        assert.deepEqual(parse(at.slice(1).map((end, index) => text.slice(at[index], end))), deltas);
      }),
    );
  });
}

test("without tools a call is text", () => {
  assert.deepEqual(parse([call("a", "{}")], false), [{ type: "content", text: call("a", "{}") }]);
});

test("arguments keep spacing, order and escapes, whatever else the object holds", () => {
  const raw = '{ "b" : "\\u00e9 \\" }, \\"arguments\\": 1",\n "a":[{"arguments":2}] }';
  assert.deepEqual(readToolCall(`{"note": {"arguments": 3}, "arguments" :  ${raw} , "name": "x"}`), { name: "x", arguments: raw });
  for (const text of [
    "",
    "[]",
    "null",
    '{"name": 3, "arguments": {}}',
    '{"name": "", "arguments": {}}',
    '{"name": "a", "arguments": {}} x',
  ])
    assert.equal(readToolCall(text), null, text);
});

test("a turn that is sent back prints as it was sampled", () => {
  const sampled = `<think>\nHm.\n</think>\n\nLook.\n${call("bash", '{"command":  "ls"}')}\n${call("bash", "{}")}`;
  const deltas = parse([sampled]);
  const textOf = (type: string) => deltas.map((delta) => (delta.type === type && "text" in delta ? delta.text : "")).join("");
  const tool_calls = deltas.flatMap((delta) =>
    delta.type === "tool_call" ? [{ function: { name: delta.name, arguments: delta.arguments } }] : [],
  );
  const message = { role: "assistant" as const, content: textOf("content"), reasoning: textOf("reasoning"), tool_calls };
  assert.equal(renderChat([message], [], false), `<|im_start|>assistant\n${sampled}<|im_end|>\n`);
});

test("a stop string ends the text before it, however it is cut", () => {
  const run = (pieces: string[], stops: string[]) => {
    const reader = new StopStrings(stops);
    let text = "";
    for (const piece of pieces) {
      const { text: said, stop } = reader.feed(piece);
      text += said;
      if (stop !== null) return { text, stop };
    }
    return { text: text + reader.finish(), stop: null };
  };
  for (const pieces of [["one END two"], [..."one END two"], ["one E", "ND two"]])
    assert.deepEqual(run(pieces, ["END", "two"]), { text: "one ", stop: "END" });
  assert.deepEqual(run(["one EN", "X"], ["END"]), { text: "one ENX", stop: null });
  assert.deepEqual(run(["one EN"], ["END"]), { text: "one EN", stop: null });
});
