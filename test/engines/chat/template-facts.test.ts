import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message, Role } from "../../../base/schema/message.ts";
import { chatRequestJson, toChatMessages } from "../../../engines/chat/messages.ts";
import { fingerprints, roleMapping, rolePlaces, type Tokenize, textLists } from "../../../engines/chat/template-facts.ts";
import type { TokenizeSource } from "../../../engines/engine.ts";
import { encode } from "../../fakes/engines/scripted-engine.ts";

/** A template that prints a turn where `prints` says so; null: it refuses the conversation. */
const template =
  (prints: (role: string, later: boolean) => boolean | null): Tokenize =>
  async (source: TokenizeSource) => {
    if ("text" in source) return encode(source.text);
    const ids: number[] = [];
    for (const [index, message] of source.messages.entries()) {
      const printed = prints(message.role, index > 0);
      if (printed === null) throw new Error("refused");
      if (printed) ids.push(...encode(`<${message.role}>${message.parts.map((part) => (part.type === "text" ? part.text : "")).join("")}`));
    }
    return ids;
  };

const cases: [string, (role: string, later: boolean) => boolean | null, Record<string, string>][] = [
  ["all of them", () => true, {}],
  ["no developer turn", (role) => role !== "developer", { developer: "system" }],
  ["an error for a developer turn", (role) => (role === "developer" ? null : true), { developer: "system" }],
  [
    "system turns at the beginning only",
    (role, later) => role === "user" || role === "assistant" || (role === "system" && !later),
    { developer: "system", "system (later)": "user" },
  ],
  ["no system turn at all", (role) => role === "user" || role === "assistant", { system: "user", developer: "user" }],
];
for (const [what, prints, mapping] of cases)
  test(`a template that prints ${what} gets ${JSON.stringify(mapping)}`, async () => {
    assert.deepEqual(roleMapping(await rolePlaces(template(prints))), mapping);
  });

test("a template that leaves its own system prompt out for one that is given prints system turns", async () => {
  const own: Message = {
    role: "system",
    parts: [{ type: "text", text: "You are a model, made by a company, and there are many words to say about it here." }],
  };
  const printing = template(() => true);
  const tokenize: Tokenize = (source) =>
    printing("text" in source || source.messages[0]?.role === "system" ? source : { ...source, messages: [own, ...source.messages] });
  assert.deepEqual(roleMapping(await rolePlaces(tokenize)), {});
});

test("of a list of texts only a template that prints all of it, and nothing else, gets the list", async () => {
  const shown: Record<string, (texts: string[]) => string> = {
    system: ([first = ""]) => first,
    developer: (texts) => JSON.stringify(texts.map((text) => ({ type: "text", text }))),
    user: (texts) => texts.join(""),
    assistant: (texts) => texts.join(" "),
    tool: (texts) => texts.join("\n"),
  };
  const tokenize: Tokenize = async (source) =>
    "text" in source
      ? encode(source.text)
      : source.messages.flatMap(({ role, parts: [...parts] }) => {
          const texts = parts
            .flatMap((part) => (part.type === "tool_result" ? part.content : [part]))
            .map((part) => (part.type === "text" ? part.text : ""));
          return encode(texts.length === 1 ? (texts[0] as string) : (shown[role]?.(texts) ?? ""));
        });
  assert.deepEqual(await textLists(tokenize), ["user", "assistant", "tool"]);
  assert.deepEqual(await textLists(() => Promise.reject(new Error("404"))), []);
});

test("several texts go out as a list to a template that prints one, else on lines of their own; a turn that calls part is no list", () => {
  const text = (said: string) => ({ type: "text" as const, text: said });
  const call = { type: "tool_call" as const, id: "c", name: "f", arguments: "{}", kind: "function" as const };
  const said: Message[] = [
    { role: "system", parts: [text("a"), text("b")] },
    { role: "user", parts: [text("a"), text("b")] },
    { role: "user", parts: [text("a")] },
    { role: "assistant", parts: [text("a"), call, text("b")] },
    { role: "assistant", parts: [text("a"), text("b"), call] },
    { role: "tool", parts: [{ type: "tool_result", call_id: "c", content: [text("a"), text("b")], is_error: true }] },
  ];
  const contents = (text_lists: Role[]) => toChatMessages(said, { role_mapping: {}, text_lists }).map(({ content }) => content);
  const list = [text("a"), text("b")];
  assert.deepEqual(contents(["user", "assistant", "tool"]), ["a\nb", list, "a", "ab", list, [text("[tool error] a"), text("b")]]);
  assert.deepEqual(contents([]), ["a\nb", "a\nb", "a", "ab", "a\nb", "[tool error] a\nb"]);
  // What was written for one engine is not what another gets.
  const fields = (text_lists: Role[]) =>
    JSON.parse(chatRequestJson({ model: "m" }, { messages: said, tools: [] }, { role_mapping: {}, text_lists }).toString());
  assert.deepEqual([fields(["user"]).messages[1].content, fields([]).messages[1].content], [list, "a\nb"]);
});

test("where the server has no tokenizer route nothing is mapped and nothing is hashed", async () => {
  const absent: Tokenize = () => Promise.reject(new Error("404"));
  assert.deepEqual(roleMapping(await rolePlaces(absent)), {});
  assert.deepEqual(await fingerprints(absent), { template: null, tokenizer: null });
});

test("two templates have two fingerprints, one template has one", async () => {
  const all = await fingerprints(template(() => true));
  const some = await fingerprints(template((role) => role !== "system"));
  assert.deepEqual(await fingerprints(template(() => true)), all);
  assert.equal(all.tokenizer, some.tokenizer);
  assert.notEqual(all.template, some.template);
});

test("a later turn goes out under the role that is printed there, an early one stays", () => {
  const turn = (role: Message["role"]): Message => ({ role, parts: [{ type: "text", text: role }] });
  const sent = toChatMessages([turn("developer"), turn("system"), turn("user"), turn("developer"), turn("system")], {
    role_mapping: { developer: "system", "system (later)": "user" },
  });
  assert.deepEqual(
    sent.map(({ role }) => role),
    ["system", "system", "user", "user", "user"],
  );
});
