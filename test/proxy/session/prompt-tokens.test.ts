import assert from "node:assert/strict";
import { test } from "node:test";
import { IdText } from "../../../base/tokens/id-text.ts";
import { promptTokens } from "../../../proxy/session/prompt-tokens.ts";

test("of a prompt that goes on from a known call only what is new is parsed", () => {
  const known = { id: "call1", idText: IdText.of([5, 17, 300]) };
  const prompt = {
    text: Buffer.from("5,17,300,8,9"),
    get token_ids(): number[] {
      throw new Error("all of its ids were asked for, tens of thousands in a long conversation");
    },
  };
  const { delta, whole } = promptTokens([known], prompt);
  assert.deepEqual(delta, { base_call_id: "call1", base_len: 3, new: [8, 9] });
  assert.deepEqual(whole.toIds(), [5, 17, 300, 8, 9]);
});

test("a prompt that no call begins is stored whole", () => {
  const { delta, whole } = promptTokens([{ id: "call1", idText: IdText.of([5]) }], { token_ids: [50, 6] });
  assert.deepEqual([delta, whole.toIds()], [{ base_call_id: null, base_len: 0, new: [50, 6] }, [50, 6]]);
});
