import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { foldImages, type ImageSpan, plantedPad } from "../../../base/tokens/image-spans.ts";

const [pad, before, after] = [900, 901, 902];
const tokens = { pad, before, after };

/** Texts with pictures between them, as a template prints them: the prompt that is given, the one that is sampled on, and its spans. */
const prompts = fc
  .array(fc.record({ text: fc.array(fc.integer({ min: 0, max: 800 }), { maxLength: 6 }), pads: fc.integer({ min: 1, max: 9 }) }), {
    maxLength: 6,
  })
  .map((pieces) => {
    const [given, expanded, spans]: [number[], number[], ImageSpan[]] = [[], [], []];
    for (const { text, pads } of pieces) {
      given.push(...text, before, pad, after);
      expanded.push(...text, before);
      spans.push({ start: expanded.length, length: pads });
      expanded.push(...new Array<number>(pads).fill(pad), after);
    }
    return { given, expanded, spans };
  });

test("a prompt with the pads of its pictures folds to the one that was given, with one pad a picture", () => {
  fc.assert(fc.property(prompts, ({ given, expanded, spans }) => assert.deepEqual(foldImages(expanded, spans), given)));
});

test("what goes on from a prompt folds to what goes on from the one that was given", () => {
  fc.assert(
    fc.property(prompts, prompts, (past, more) => {
      const shifted = more.spans.map(({ start, length }) => ({ start: start + past.expanded.length, length }));
      const folded = foldImages([...past.expanded, ...more.expanded], [...past.spans, ...shifted]);
      assert.deepEqual(folded, [...past.given, ...more.given]);
    }),
  );
});

test("a pad that stands nowhere but in a picture is not planted, and one more pad anywhere is", () => {
  fc.assert(
    fc.property(prompts, fc.nat(), ({ expanded, spans }, place) => {
      assert.equal(plantedPad(expanded, [1, 2], spans, tokens), null);
      assert.match(plantedPad(expanded, [1, pad], spans, tokens) ?? "", /^sampled token 1 /);
      const at = place % (expanded.length + 1);
      const moved = spans.map(({ start, length }) => ({ start: start >= at ? start + 1 : start, length }));
      assert.notEqual(plantedPad(expanded.toSpliced(at, 0, pad), [], moved, tokens), null);
    }),
  );
});

test("a picture that is told to stand behind the prompt, or within another one, is not trained", () => {
  const prompt = [1, before, pad, pad, after, 2];
  assert.equal(plantedPad(prompt, [], [{ start: 2, length: 2 }], tokens), null);
  for (const more of [
    { start: 6, length: 1 },
    { start: 3, length: 1 },
    { start: 2, length: 2 },
  ])
    assert.match(plantedPad(prompt, [], [{ start: 2, length: 2 }, more], tokens) ?? "", /behind the prompt, or within another one/);
});

test("spans that are no runs of the prompt, or out of order, are refused", () => {
  for (const spans of [
    [{ start: 1, length: 0 }],
    [{ start: 2, length: 2 }],
    [
      { start: 1, length: 1 },
      { start: 0, length: 1 },
    ],
  ])
    assert.throws(() => foldImages([1, 2, 3], spans), RangeError);
});
