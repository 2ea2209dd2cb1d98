/** Checks that the report says how many tokens have their experts on record, and why the others do not. */
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
  for (const [config, calls] of [
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
      calls > 0 ? [8, 8] : [undefined, undefined],
    );
    const summarizer = new FidelitySummarizer({});
    summarizer.add(trajectory);
    assert.deepEqual([summarizer.summary.routing.calls, summarizer.summary.routing.missing.not_told ?? 0], [calls, calls]);
    const said =
      /experts: which ones were taken is on record for 0 of 6 sampled tokens.*\n {2}2 calls without: not told \(.*--enable-return-routed-experts/;
    assert.equal(said.test(renderSummary(summarizer.summary)), calls > 0);
  }
});

test("fidelity tells the share of sampled tokens and rows whose experts are on record, and why others are not", async () => {
  await writeFile(join(root, "config.json"), '{"num_experts": 8}');
  await using at = await enginesAt(() => ({ text: "ok" }), { a: { root, routing: "told" } });
  const summarizer = new FidelitySummarizer({});
  for (const relay of ["buffered", "live"] as const) {
    const client = await at.open({ purpose: "train", relay });
    await client.say([{ role: "user", content: "one" }]);
    summarizer.add(await client.trajectory());
  }
  assert.deepEqual(summarizer.summary.routing, {
    calls: 2,
    sampled_tokens: 6,
    recorded_tokens: 3,
    missing: { streamed: 1 },
    rows: 2,
    routed_rows: 1,
  });
  assert.match(renderSummary(summarizer.summary), /for 3 of 6 sampled tokens \(50 %\); 1 of 2 rows have them for every token/);
});
