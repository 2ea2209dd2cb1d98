/** The routing of a model with experts is not recorded: the report says so, and is silent if the number is unknown. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { renderSummary } from "../../../view/fidelity/render.ts";
import { FidelitySummarizer } from "../../../view/fidelity/summary.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { enginesAt } from "../../fakes/proxies/engines-at.ts";

const root = scratchFolder("routed");

test("fidelity counts calls of models with experts, and no calls of other or unknown models", async () => {
  for (const [config, unrouted] of [
    [null, 0],
    ['{"model_type": "llama"}', 0],
    ['{"num_experts": 8}', 2],
  ] as const) {
    if (config !== null) await writeFile(join(root, "config.json"), config);
    await using at = await enginesAt(() => ({ text: "ok" }), { a: { root: config === null ? null : root } });
    const client = await at.open({ purpose: "train" });
    for (const content of ["one", "two"]) await client.say([{ role: "user", content }]);
    const trajectory = await client.trajectory();
    assert.deepEqual(
      trajectory.calls.map(({ experts }) => experts),
      unrouted > 0 ? [8, 8] : [undefined, undefined],
    );
    const summarizer = new FidelitySummarizer({});
    summarizer.add(trajectory);
    assert.equal(summarizer.summary.unrouted, unrouted);
    const said = /experts: 2 calls of a model with experts, whose routing is not recorded/;
    assert.equal(said.test(renderSummary(summarizer.summary)), unrouted > 0);
  }
});
