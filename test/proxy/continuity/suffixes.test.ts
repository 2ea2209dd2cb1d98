/** The arithmetic of a continuation: whatever is said and appended, the ids spell what the template prints, and begin with what was sampled. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Message, Part, Tool } from "../../../base/schema/message.ts";
import { IdText } from "../../../base/tokens/id-text.ts";
import { toChatMessages, toChatTools } from "../../../engines/chat/messages.ts";
import { type ChatMessage, type ChatTool, renderChat } from "../../../practice/template.ts";
import { encode as encodePractice } from "../../../practice/tokenizer/vocabulary.ts";
import type { Renderer } from "../../../proxy/continuity/anchor.ts";
import { marks, shapeOf } from "../../../proxy/continuity/shape.ts";
import { Suffixes } from "../../../proxy/continuity/suffixes.ts";
import { ToyTokenizer } from "../../fakes/engines/toy-tokenizer.ts";

const tools: Tool[] = [{ name: "bash", parameters: { type: "object", properties: {} }, kind: "function" }];
const end = "<|im_end|>";

function print(messages: Message[], list: Tool[], generation: boolean): string {
  return renderChat(toChatMessages(messages) as unknown as ChatMessage[], toChatTools(list) as unknown as ChatTool[], generation);
}

function rendererOf(tokenizer: ToyTokenizer): Renderer {
  return {
    async render(messages, list, generation) {
      const text = print(messages, list, generation);
      return { text, token_ids: tokenizer.encode(text) };
    },
    ids: async (messages, list) => tokenizer.encode(print(messages, list, true)),
    tokenize: async (text) => tokenizer.encode(text),
    detokenize: async (ids) => tokenizer.decode(ids),
  };
}

/** Words with all that could be taken for something else: ends of turns, marks of the probes, white space at the rims. */
const words = fc
  .array(
    fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 12 }),
      fc.constantFrom(end, "<|im_start|>", "\n", " ", "</tool_response>", ...Object.values(marks)),
    ),
    { maxLength: 5 },
  )
  .map((pieces) => pieces.join(""));

type Turn = { text: string; calls: string[]; order: number[]; user: string | null };
const turn: fc.Arbitrary<Turn> = fc
  .record({ text: words, calls: fc.array(words, { maxLength: 3 }), seed: fc.nat(), user: fc.option(words), anyway: words })
  .map(({ text, calls, seed, user, anyway }) => ({
    // A turn says something: an empty one is printed by no template as it was sampled.
    text: calls.length === 0 && text === "" ? "said" : text,
    calls,
    order: calls.map((_, index) => index).toSorted((a, b) => ((a * 7 + seed) % 5) - ((b * 7 + seed) % 5)),
    user: calls.length === 0 ? (user ?? anyway) : user,
  }));

test("a conversation that goes on spells what the template prints, whatever is said in it", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(turn, { minLength: 1, maxLength: 4 }), fc.boolean(), async (turns, hasTools) => {
      const tokenizer = new ToyTokenizer();
      const suffixes = new Suffixes();
      const renderer = rendererOf(tokenizer);
      const list = hasTools ? tools : [];
      const messages: Message[] = [{ role: "user", parts: [{ type: "text", text: "hi" }] }];
      let prompt = tokenizer.encode(print(messages, list, true));
      for (const [number, { text, calls, order, user }] of turns.entries()) {
        const parts: Part[] = calls.map((value, index) => ({
          type: "tool_call",
          id: `id${number}x${index}`,
          name: "bash",
          arguments: JSON.stringify({ value }),
          kind: "function",
        }));
        const said: Message = { role: "assistant", parts: text === "" ? parts : [{ type: "text", text }, ...parts] };
        const printed = print([...messages, said], list, false);
        const sampled = [...printed.slice(print(messages, list, true).length, -`${end}\n`.length)].flatMap((letter) =>
          tokenizer.encode(letter),
        );
        const kept = [...prompt, ...sampled, ...tokenizer.encode(end)];
        const appended: Message[] = order.map((index) => ({
          role: "tool",
          parts: [
            {
              type: "tool_result",
              call_id: `id${number}x${index}`,
              content: [{ type: "text", text: calls[index] ?? "" }],
              is_error: false,
            },
          ],
        }));
        if (user !== null) appended.push({ role: "user", parts: [{ type: "text", text: user }] });
        const suffix = await suffixes.suffixOf({
          renderer,
          kind: "",
          shape: shapeOf(messages, said, appended, hasTools),
          turn: said,
          appended,
          tools: list,
          toolsHash: null,
          close: kept.at(-1) as number,
          kept: IdText.of(kept),
        });
        assert.ok(typeof suffix !== "string", `refused: ${suffix}`);
        messages.push(said, ...appended);
        prompt = [...kept, ...suffix];
        assert.equal(tokenizer.decode(prompt), print(messages, list, true));
        // What was appended is tokenised as it is where it stands in a whole rendering.
        assert.deepEqual(suffix, tokenizer.encode(`${end}${tokenizer.decode(suffix)}`).slice(1));
      }
    }),
    { numRuns: 150 },
  );
});

test("a byte-pair tokenizer gives the same suffix as the whole rendering has", async () => {
  const renderer: Renderer = {
    async render(messages, list, generation) {
      const text = print(messages, list, generation);
      return { text, token_ids: encodePractice(text) };
    },
    ids: async (messages, list) => encodePractice(print(messages, list, true)),
    tokenize: async (text) => encodePractice(text),
    detokenize: async (ids) => (ids.length === 1 && ids[0] === encodePractice(end)[0] ? end : "?"),
  };
  await fc.assert(
    fc.asyncProperty(words, async (text) => {
      const messages: Message[] = [{ role: "user", parts: [{ type: "text", text: "hi" }] }];
      const said: Message = { role: "assistant", parts: [{ type: "text", text: "Fine." }] };
      const appended: Message[] = [{ role: "user", parts: [{ type: "text", text }] }];
      const before = print([...messages, said], [], false);
      const kept = encodePractice(before.slice(0, -1));
      const shape = shapeOf(messages, said, appended, false);
      const suffix = await new Suffixes().suffixOf({
        renderer,
        kind: "",
        shape,
        turn: said,
        appended,
        tools: [],
        toolsHash: null,
        close: kept.at(-1) as number,
        kept: IdText.of(kept),
      });
      assert.deepEqual([...kept, ...(suffix as number[])], encodePractice(print([...messages, said, ...appended], [], true)));
    }),
    { numRuns: 100 },
  );
});

/** As Qwen3's: the last turn has an empty block while only tools have spoken behind it, and a tool may speak as a user. */
function printWithBlock(messages: Message[], generation: boolean): string {
  const words = (message: Message): string => message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  const isAsked = messages.slice(last + 1).some((message) => !words(message).startsWith("<tool_response>"));
  const turns = messages.map((message, index) => {
    const block = index === last && !isAsked ? "<think>\n\n</think>\n\n" : "";
    return `<|im_start|>${message.role}\n${block}${words(message)}${end}\n`;
  });
  return turns.join("") + (generation ? "<|im_start|>assistant\n" : "");
}

test("where what is appended changes how the turn before it is printed, the suffix is asked for with the very messages", async () => {
  const tokenizer = new ToyTokenizer();
  const renderer: Renderer = {
    async render(messages, _, generation) {
      const text = printWithBlock(messages, generation);
      return { text, token_ids: tokenizer.encode(text) };
    },
    ids: async (messages) => tokenizer.encode(printWithBlock(messages, true)),
    tokenize: async (text) => tokenizer.encode(text),
    detokenize: async (ids) => tokenizer.decode(ids),
  };
  const suffixes = new Suffixes();
  const said = (role: Message["role"], text: string): Message => ({ role, parts: [{ type: "text", text }] });
  const before = [said("user", "hi")];
  const turn = said("assistant", "Fine.");
  for (const text of ["And then?", "<tool_response>\na\n</tool_response>", "Once more?"]) {
    const appended = [said("user", text)];
    const kept = tokenizer.encode(printWithBlock([...before, turn], false).trimEnd());
    const shape = shapeOf(before, turn, appended, false);
    const suffix = await suffixes.suffixOf({
      renderer,
      kind: "",
      shape,
      turn,
      appended,
      tools: [],
      toolsHash: null,
      close: kept.at(-1) as number,
      kept: IdText.of(kept),
    });
    assert.equal(tokenizer.decode(suffix as number[]), `\n<|im_start|>user\n${text}${end}\n<|im_start|>assistant\n`);
  }
});
