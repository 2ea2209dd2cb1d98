import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { firstPromptOf, hashOfPrompt } from "../../exporters/shapes/common-prompt.ts";
import { selectRows } from "../../reconstruct/index.ts";
import { attemptFidelityOf, eachTrajectory } from "../../rollouts/records/index.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { writeGoldenRun } from "../fakes/records/golden-run.ts";

const folder = join(scratchFolder("attempt-fidelity"), "run");

test("a row of the index counts what the rows themselves come to", async () => {
  await writeGoldenRun(folder, 200);
  const seen = { sameText: 0, prompts: 0 };
  for await (const trajectory of eachTrajectory(folder)) {
    const made = attemptFidelityOf(trajectory);
    const { row_count, tokens } = selectRows(trajectory, { strategy: "tolerant" });
    assert.deepEqual(made.tolerant, { rows: row_count, row_tokens: tokens.row_tokens, tree_tokens: tokens.tree_tokens });
    const { rows, standing } = selectRows(trajectory);
    const hashes = new Set([...rows].map((row) => hashOfPrompt(firstPromptOf(row))));
    assert.deepEqual(made.prompts, standing.in_loss ? [...hashes] : null);
    if (made.tolerant.rows < made.rows) seen.sameText++;
    seen.prompts += made.prompts?.length ?? 0;
  }
  assert.ok(seen.sameText > 0 && seen.prompts > 100, JSON.stringify(seen));
});

test("the prompts of packed rows and of a dummy row are those of the rows", async () => {
  for await (const trajectory of eachTrajectory(folder))
    for (const options of [{ strategy: "tree" }, { maxTokens: 3 }, { strategy: "per-call" }] as const) {
      const { rows, prompts } = selectRows(trajectory, options);
      assert.deepEqual([...prompts], [...rows].map(firstPromptOf));
    }
});
