/** The templates that circulate: a turn is given another role exactly where they do not print it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toChatMessages, verbatimWording } from "../../../engines/chat/messages.ts";
import { rolePlaces, type Tokenize } from "../../../engines/chat/template-facts.ts";
import { chatTemplates, TemplateRenderer } from "../../interop/templates/place.ts";
import { need } from "../../needs.ts";

const mark = "a word of its own";
const user = { role: "user", content: "go" };
const conversations = (role: string): [place: string, messages: unknown[]][] => [
  [role, [{ role, content: mark }, user]],
  [`${role} (later)`, [user, { role: "assistant", content: "gone" }, { role, content: mark }, user]],
];

test("of every circulating template it is known which system and developer turns it prints", async (t) => {
  if (!(await need(t, "templates"))) return;
  await using renderer = new TemplateRenderer();
  for (const template of chatTemplates()) {
    const print = (messages: unknown[]) => renderer.render(template, { messages, tools: null, generation: true });
    const tokenize: Tokenize = async (source) =>
      Array.from("text" in source ? source.text : await print(toChatMessages(source.messages, verbatimWording)), (letter) =>
        letter.charCodeAt(0),
      );
    const places = await rolePlaces(tokenize);
    if (places === null) continue;
    for (const [place, messages] of ["system", "developer"].flatMap(conversations)) {
      const printed = await print(messages).then(
        (text) => (text.includes(mark) ? "printed" : "dropped"),
        () => "refused",
      );
      if (places[place] !== undefined) assert.equal(places[place], printed, `${template.origin}/${template.name}: ${place}`);
    }
  }
});
