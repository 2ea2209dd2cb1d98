/** Rows that a limit cuts where pictures stand. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { selectRows } from "../../../reconstruct/index.ts";
import { pad, picturedGroup } from "../../fakes/records/pictured-group.ts";

test("a row of a prompt that is cut holds whole pictures only, and ends with a token of text", () => {
  const [trajectory = assert.fail()] = picturedGroup();
  const [{ token_ids: prompt = [] } = {}] = trajectory.nodes;
  for (let maxTokens = 1; maxTokens <= prompt.length; maxTokens++) {
    const [row = assert.fail()] = selectRows(trajectory, { maxTokens, readsImages: true }).rows;
    const places = new Set((row.media ?? []).flatMap(({ start, length }) => Array.from({ length }, (_, at) => start + at)));
    const pads = row.token_ids.flatMap((id, at) => (id === pad ? [at] : []));
    assert.deepEqual([row.dummy, [...places]], [true, pads], `${maxTokens} tokens`);
    assert.notEqual(row.token_ids.at(-1), pad, `${maxTokens} tokens`);
    assert.deepEqual(row.token_ids, prompt.slice(0, row.token_ids.length));
    assert.equal(row.prompt_length, row.token_ids.length - 1);
  }
});
