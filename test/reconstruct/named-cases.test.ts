import assert from "node:assert/strict";
import { test } from "node:test";
import { selectRows } from "../../reconstruct/index.ts";
import { drawEdges, drawTree } from "./draw-tree.ts";
import { namedCases } from "./named-cases.ts";
import { rebuilt } from "./rebuilt.ts";

for (const { name, log, edges, tree, rows, excluded, replayed, outcomes } of namedCases)
  test(`${name}: edges, tree and rows are the expected ones`, () => {
    const trajectory = rebuilt(log());
    assert.deepEqual(drawEdges(trajectory), edges);
    assert.deepEqual(drawTree(trajectory), tree);
    assert.deepEqual(trajectory.fidelity.excluded, excluded ?? {});
    assert.equal(trajectory.fidelity.replayed_tokens, replayed);
    const seen = trajectory.calls.map((call) => call.outcome);
    assert.deepEqual(seen, outcomes ?? seen.map(() => "delivered"));
    for (const [strategy, count] of Object.entries(rows))
      assert.equal(selectRows(trajectory, { strategy: strategy as "strict" }).row_count, count, strategy);
  });

test("a joint of the same text is flagged, and so is all that comes after it", () => {
  const twice = namedCases.find(({ name }) => name.startsWith("the same text in other tokens"));
  assert.ok(twice);
  const trajectory = rebuilt(twice.log());
  const [row] = selectRows(trajectory, { strategy: "tolerant" }).rows;
  assert.deepEqual(
    row?.segments.map(({ kind, context, trainable }) => `${kind} ${context} ${trainable}`),
    [
      "prompt exact false",
      "sampled exact true",
      "prompt same_text false",
      "sampled same_text true",
      "prompt same_text false",
      "sampled same_text true",
    ],
  );
  // Sampled ids as they were, and between them only what is new: the closing and the next user's words.
  assert.deepEqual(row?.token_ids.slice(9, 12), [901, 902, 2]);
  assert.equal(row?.token_ids.length, 9 + 3 + 4 + 3 + 4 + 2);
});
