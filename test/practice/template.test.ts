import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type ChatMessage, renderChat } from "../../practice/template.ts";

const tools = [{ type: "function", function: { name: "bash", parameters: { type: "object" } } }];

test("a conversation with tools prints as ChatML with the tools in the system turn", () => {
  const messages: ChatMessage[] = [
    { role: "system", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "ls" },
        { type: "text", text: "please" },
      ],
    },
    { role: "assistant", content: null, tool_calls: [{ function: { name: "bash", arguments: '{"command":"ls"}' } }] },
    { role: "tool", content: "a.txt" },
    { role: "developer", content: "Be kind." },
  ];
  assert.equal(
    renderChat(messages, tools),
    [
      "<|im_start|>system",
      "Be brief.",
      "",
      "These functions can be called:",
      "<tools>",
      '{"type":"function","function":{"name":"bash","parameters":{"type":"object"}}}',
      "</tools>",
      "A call is written as",
      "<tool_call>",
      '{"name": <name>, "arguments": <object>}',
      "</tool_call><|im_end|>",
      "<|im_start|>user",
      "ls",
      "please<|im_end|>",
      "<|im_start|>assistant",
      "<tool_call>",
      '{"name": "bash", "arguments": {"command":"ls"}}',
      "</tool_call><|im_end|>",
      "<|im_start|>tool",
      "<tool_response>",
      "a.txt",
      "</tool_response><|im_end|>",
      "<|im_start|>developer",
      "Be kind.<|im_end|>",
      "<|im_start|>assistant",
      "",
    ].join("\n"),
  );
});

test("arguments that are a JSON string print what it holds, and other text as it is", () => {
  const print = (text: string) =>
    renderChat([{ role: "assistant", tool_calls: [{ function: { name: "a", arguments: text } }] }], [], false);
  assert.match(print('"{bad"'), /"arguments": \{bad\}\n/);
  assert.match(print("{bad"), /"arguments": \{bad\}\n/);
});

const message: fc.Arbitrary<ChatMessage> = fc.record({
  role: fc.constantFrom("system", "developer", "user", "assistant", "tool"),
  content: fc.string(),
  reasoning: fc.option(fc.string()),
  tool_calls: fc.array(fc.record({ function: fc.record({ name: fc.string(), arguments: fc.json() }) }), { maxLength: 2 }),
});

test("what is appended changes nothing of what is there", () => {
  fc.assert(
    fc.property(fc.array(message, { minLength: 1, maxLength: 5 }), message, fc.boolean(), (messages, next, withTools) => {
      const list = withTools ? tools : [];
      assert.ok(renderChat([...messages, next], list, false).startsWith(renderChat(messages, list, false)));
      assert.ok(renderChat(messages, list).startsWith(renderChat(messages, list, false)));
    }),
  );
});
