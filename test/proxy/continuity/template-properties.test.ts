/** The suffix rule over random conversations and every chat template at hand: right or refused, whatever was said before. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Message, Part } from "../../../base/schema/message.ts";
import { marks } from "../../../proxy/continuity/shape.ts";
import { chatTemplates, TemplateRenderer } from "../../interop/templates/place.ts";
import { need } from "../../needs.ts";
import { answered, type Continuation, call, result, said, text, trialsOf, user, type Verdict } from "./templates.ts";

/** What people and programs say, with what templates and the rule itself could stumble over. */
const words = fc
  .array(
    fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 10 }),
      fc.constantFrom("\n", " ", "{{ x }}", "{% if %}", '{"a": [1]}', "<b>", "<tool_response>", "naïve 日本", ...Object.values(marks)),
    ),
    { maxLength: 4 },
  )
  .map((pieces) => pieces.join(""));

/** Templates trim what the user says or refuse to print nothing; what is asked about here is what stands around it. */
const spoken = words.map((each) => `so ${each} ok`);
const names = ["list_files", "read_file"] as const;
const calls = (least: number, most: number) => fc.array(fc.tuple(fc.constantFrom(...names), words), { minLength: least, maxLength: most });
type Calls = [(typeof names)[number], string][];

const partsOf = (made: Calls, first: number): Part[] =>
  made.map(([name, path], index) => call(first + index, name, JSON.stringify({ path })));

/** Turns with their results, and answers with the user's next words, in any order. */
const past = fc
  .tuple(fc.option(words), spoken, fc.array(fc.oneof(calls(1, 2), spoken), { maxLength: 4 }))
  .map(([system, first, rounds]): Message[] => [
    ...(system === null ? [] : [{ role: "system" as const, parts: [text(`Be brief. ${system}`)] }]),
    user(first),
    ...rounds.flatMap((round, at): Message[] =>
      typeof round === "string"
        ? [{ role: "assistant", parts: [text("One.")] }, user(round)]
        : [{ role: "assistant", parts: partsOf(round, at + 3) }, ...round.map(([, words], index) => result(at + 3 + index, words))],
    ),
  ]);

const continuation = fc
  .record({
    before: past,
    made: calls(0, 2),
    hasText: fc.boolean(),
    thinks: fc.boolean(),
    results: words,
    more: fc.option(spoken),
    turned: fc.boolean(),
  })
  .map(({ before, made, hasText, thinks, results, more, turned }): Continuation => {
    const parts = [...(hasText || made.length === 0 ? [text(made.length === 0 ? answered : "I look.")] : []), ...partsOf(made, 0)];
    const heard = made.map((_, index) => result(index, `${results}${index}`));
    const appended = [...(turned ? heard.toReversed() : heard), ...(more !== null || made.length === 0 ? [user(more ?? "so")] : [])];
    return { before, turn: said(parts, thinks), appended };
  });

const twoCallsOfOneTool: Continuation = {
  before: [user("so")],
  turn: said([call(0, "read_file", '{"path": "a"}'), call(1, "read_file", '{"path": "b"}')], false),
  appended: [result(0, "0"), result(1, "1")],
};

test("the suffix rule is right or refuses on every template, whatever was said and heard", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "templates"))) return;
  await using renderer = new TemplateRenderer();
  const templates = chatTemplates().map((template) => ({ name: template.name, trial: trialsOf(template, renderer) }));
  // Two calls of one tool, of which this template prints the first.
  const printingOne = templates.find(({ name }) => name === "gptoss_training") ?? assert.fail();
  const seen: Partial<Record<Verdict, number>> = {};
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...templates), continuation, async ({ name, trial }, one) => {
      const { verdict, detail } = await trial(one);
      seen[verdict] = (seen[verdict] ?? 0) + 1;
      assert.notEqual(verdict, "wrong", `${name}: ${detail}`);
    }),
    // The same conversations in every run, for the templates are other people's: what is wrong about one is to be found by
    // a search for it, with other seeds and more runs (120 000 were tried), and not in an unrelated change.
    { numRuns: 600, seed: 600, examples: [[printingOne, twoCallsOfOneTool]] },
  );
  t.diagnostic(JSON.stringify(seen));
  assert.ok((seen.equal ?? 0) > 200, JSON.stringify(seen));
});
