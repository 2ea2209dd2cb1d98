import assert from "node:assert/strict";
import { test } from "node:test";
import { AlidadeError } from "../../../base/errors.ts";
import type { NeutralRequest } from "../../../base/schema/message.ts";
import { anthropicMessages } from "../../../proxy/dialects/anthropic-messages.ts";
import { openaiChat } from "../../../proxy/dialects/openai-chat.ts";
import { openaiCompletions } from "../../../proxy/dialects/openai-completions.ts";
import { openaiResponses } from "../../../proxy/dialects/openai-responses.ts";

const messages = [{ role: "user", content: "Hi" }];
/** The dialects of vLLM's own routes, each with the least that it asks for. */
const dialects = [
  [openaiChat, { messages }],
  [openaiResponses, { input: "Hi" }],
  [anthropicMessages, { messages, max_tokens: 9 }],
  [openaiCompletions, { prompt: "Hi" }],
] as const;

/** Under the names of the engine, which gets them so. */
const taken = {
  ...{ top_k: 3, min_p: 0.1, seed: 7, presence_penalty: 1, frequency_penalty: 1, repetition_penalty: 1.2, logit_bias: { 5: -1 } },
  ...{ stop: ["END"], stop_token_ids: [5], min_tokens: 2, ignore_eos: true, bad_words: ["x"], allowed_token_ids: [1, 2] },
  ...{ structured_outputs: { choice: ["a"] }, thinking_token_budget: 5, watermarking: false, vllm_xargs: { a: 1 } },
  ...{ chat_template: "{{ messages }}", chat_template_kwargs: { a: true }, documents: [{ text: "d" }] },
  ...{ mm_processor_kwargs: { a: 1 }, media_io_kwargs: { image: {} } },
};

const refused: [field: string, value: unknown, harmless: unknown][] = [
  ["skip_special_tokens", false, true],
  ["spaces_between_special_tokens", false, true],
  ["include_stop_str_in_output", true, false],
  ["truncate_prompt_tokens", 5, null],
  ["repetition_detection", { max_pattern_size: 3, min_count: 3 }, null],
  ["logits_processors", ["x"], []],
  ["prompt_token_ids", [1, 2], []],
];

for (const [dialect, least] of dialects) {
  const parse = (fields: Record<string, unknown>): NeutralRequest => dialect.parse({ model: "m", ...least, ...fields }, {});

  test(`${dialect.name}: what vLLM takes of sampling and template reaches the engine under its own name`, () => {
    const { sampling, native } = parse({ ...taken, user: "me" });
    const { max_tokens: _, ...extras } = sampling;
    assert.deepEqual(extras, taken);
    assert.equal(native.user, "me");
    assert.ok(!Object.keys(taken).some((key) => key in native));
  });

  test(`${dialect.name}: thinking switched at the top of the body is switched for the template`, () => {
    assert.deepEqual(parse({ enable_thinking: false }).sampling.chat_template_kwargs, { enable_thinking: false });
    const both = { enable_thinking: true, chat_template_kwargs: { enable_thinking: false, a: 1 } };
    assert.deepEqual(parse(both).sampling.chat_template_kwargs, { enable_thinking: false, a: 1 }, "the nearer one wins");
    assert.throws(() => parse({ enable_thinking: "no" }), { param: "enable_thinking" });
  });

  test(`${dialect.name}: what would part the text from its tokens or cut the prompt is refused, and its default is not`, () => {
    for (const [field, value, harmless] of refused) {
      assert.throws(
        () => parse({ [field]: value }),
        (error) => error instanceof AlidadeError && error.status === 400 && error.param === field && error.message.startsWith(field),
        field,
      );
      assert.deepEqual(parse({ [field]: harmless }).sampling, parse({}).sampling, field);
    }
  });
}

test("Messages' own stop sequences are the ones that count", () => {
  const { sampling } = anthropicMessages.parse({ model: "m", messages, max_tokens: 9, stop: ["a"], stop_sequences: ["b"] }, {});
  assert.deepEqual(sampling.stop, ["b"]);
});
