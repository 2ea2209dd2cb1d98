/** What must hold of every selection, on random sessions: rows are the tree, and every sampled token is accounted for. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Trajectory } from "../../../base/schema/trajectory.ts";
import {
  type FlatRow,
  reconstruct,
  rowInflationOf,
  type SelectOptions,
  selections,
  selectRows,
  verifyRows,
} from "../../../reconstruct/index.ts";
import { moves, play } from "../random-sessions.ts";

const limits = fc.option(fc.integer({ min: 5, max: 60 }));
const sum = (counts: Record<string, number>) => Object.values(counts).reduce((total, count) => total + count, 0);
const masked = (rows: FlatRow[]) => rows.reduce((total, row) => total + row.loss_mask.filter((mask) => mask === 1).length, 0);

function select(trajectory: Trajectory, options: Partial<SelectOptions>) {
  const { rows, ...rest } = selectRows(trajectory, options);
  return { rows: [...rows], ...rest };
}

for (const { name } of selections)
  test(`${name}: rows are paths of the tree within the limit, and each token is trained once or has a reason`, () => {
    fc.assert(
      fc.property(moves, limits, fc.boolean(), (played, maxTokens, allowGrammar) => {
        const trajectory = Trajectory.parse(reconstruct(play(played).entries));
        const { rows, row_count, tokens } = select(trajectory, { strategy: name, maxTokens, allowGrammar });
        assert.deepEqual(verifyRows(trajectory, rows), []);
        assert.equal(rows.length, row_count);
        assert.equal(tokens.sampled, trajectory.fidelity.sampled_tokens);
        assert.equal(tokens.trained + sum(tokens.excluded), tokens.sampled);
        assert.equal(tokens.trained, masked(rows));
        for (const [index, row] of rows.entries()) {
          assert.ok(maxTokens === null || row.token_ids.length <= maxTokens);
          assert.deepEqual([row.row_index, row.row_count, row.trained_tokens], [index, rows.length, masked([row])]);
          assert.equal(row.rollout_trained_tokens, tokens.trained);
          assert.equal(row.trained_tokens === 0, row.dummy);
          for (const list of [row.loss_mask, row.logprobs, row.position_ids ?? row.token_ids, row.parent_index ?? row.token_ids])
            assert.equal(list.length, row.token_ids.length);
          assert.ok(row.dummy || row.loss_mask.indexOf(1) >= row.prompt_length);
        }
        const real = rows.filter((row) => !row.dummy);
        assert.equal(
          tokens.row_tokens,
          real.reduce((total, row) => total + row.token_ids.length, 0),
        );
        assert.ok((rowInflationOf(tokens) ?? 1) >= 1);
      }),
      { numRuns: 150 },
    );
  });

test("without a limit every selection but main-agent trains exactly the tree's trainable tokens, and a tree has no token twice", () => {
  fc.assert(
    fc.property(moves, (played) => {
      const trajectory = reconstruct(play(played).entries);
      for (const { name } of selections) {
        const { tokens } = select(trajectory, { strategy: name });
        if (name !== "main-agent") assert.equal(tokens.trained, trajectory.fidelity.trainable_tokens, name);
        else assert.equal(tokens.trained + (tokens.excluded.not_selected ?? 0), trajectory.fidelity.trainable_tokens);
      }
      for (const { name } of selections) {
        const { rows, tokens } = select(trajectory, { strategy: name, allowGrammar: true });
        if (name === "strict") assert.equal(rowInflationOf(tokens), trajectory.fidelity.row_inflation);
        if (name !== "tree") continue;
        assert.ok(rows.length <= 1);
        assert.equal(tokens.row_tokens, tokens.tree_tokens);
      }
    }),
  );
});

test("a packed tree says the same as the strict rows: unrolled along its parents it gives their tokens and positions", () => {
  fc.assert(
    fc.property(moves, (played) => {
      const trajectory = reconstruct(play(played).entries);
      const [packed] = select(trajectory, { strategy: "tree", allowGrammar: true }).rows;
      const strict = select(trajectory, { strategy: "strict", allowGrammar: true }).rows;
      assert.equal(packed === undefined, strict.length === 0);
      if (packed === undefined) return;
      const { parent_index, position_ids, token_ids } = packed as FlatRow & { parent_index: number[]; position_ids: number[] };
      const unrolled = new Set(token_ids.map((_, end) => unroll(end).join()));
      for (const row of strict) assert.ok(unrolled.has(row.token_ids.join()));

      function unroll(end: number): number[] {
        const path: number[] = [];
        for (let at = end; at >= 0; at = parent_index[at] as number) path.push(token_ids[at] as number);
        assert.equal(path.length, (position_ids[end] as number) + 1);
        return path.reverse();
      }
    }),
    { numRuns: 60 },
  );
});
