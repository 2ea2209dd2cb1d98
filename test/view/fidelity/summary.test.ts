import assert from "node:assert/strict";
import { test } from "node:test";
import { edgeCauses } from "../../../base/schema/reasons/calls.ts";
import type { EdgeCause } from "../../../base/schema/trajectory.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { renderSummary } from "../../../view/fidelity/render.ts";
import { FidelitySummarizer } from "../../../view/fidelity/summary.ts";
import { assistant, LogBuilder, thinking, user } from "../../fakes/records/log-builder.ts";
import { namedCases } from "../../reconstruct/named-cases.ts";

test("a run of all named cases: tokens add up, and every cause is named with its number, the most frequent first", () => {
  const summarizer = new FidelitySummarizer({});
  const expected: Record<string, number> = {};
  for (const [index, { log, edges }] of namedCases.entries()) {
    summarizer.add({ ...reconstruct(log().entries), rollout_id: `roll${index}` });
    for (const cause of edges.flatMap((edge) => edge.split(" ")[3] ?? [])) expected[cause] = (expected[cause] ?? 0) + 1;
  }
  const { summary } = summarizer;
  assert.deepEqual(Object.fromEntries(summary.causes.map(({ cause, calls }) => [cause, calls])), expected);
  assert.deepEqual(
    summary.causes.map(({ calls }) => calls),
    summary.causes.map(({ calls }) => calls).toSorted((a, b) => b - a),
  );
  const excluded = Object.values(summary.tokens.excluded).reduce((sum, tokens) => sum + tokens, 0);
  assert.equal(summary.tokens.trained + excluded, summary.tokens.sampled);
  assert.equal(summary.rollouts, namedCases.length);
  const text = renderSummary(summary);
  for (const cause of Object.keys(expected)) assert.ok(text.includes(edgeCauses[cause as EdgeCause].cure), cause);
});

test("the example is one that shows both sides, and the price of a cause is what is computed again", () => {
  const log = new LogBuilder();
  const start = [user("u")];
  const says = assistant("ok", thinking("well"));
  const a = log.call({ messages: start, says });
  const dropped = [...start, assistant("ok"), user("on")];
  log.call({ messages: dropped, parent: a });
  const decoded = { parent_call_id: a, same_text: false, parent_text: "<think> well", child_text: "\u001b[2J" };
  log.call({ messages: [...start, assistant("ok"), user("off")], parent: a, decoded });
  const summarizer = new FidelitySummarizer({});
  summarizer.add(reconstruct(log.entries));
  const [cause] = summarizer.summary.causes;
  assert.deepEqual([cause?.cause, cause?.calls, cause?.example.turn, cause?.example.now], ["reasoning_dropped", 2, 3, "\u001b[2J"]);
  assert.equal(cause?.repeated_tokens, 2 * (cause?.example.position ?? 0));
  assert.match(renderSummary(summarizer.summary), /before: "<think> well"\n +now: +"\\\\x1b\[2J"/);
});

test("a rollout that was tried again is one rollout, in two attempts", () => {
  const log = new LogBuilder();
  log.call({ messages: [user("u")], says: assistant("ok") });
  const summarizer = new FidelitySummarizer({});
  summarizer.add(reconstruct(log.entries, { attempt: 1, in_loss: false, mask_reason: "engine_error" }));
  summarizer.add(reconstruct(log.entries, { attempt: 2 }));
  assert.deepEqual([summarizer.summary.ends.masked, summarizer.summary.ends.masked_share], [{ engine_error: 1 }, 0.5]);
  assert.match(renderSummary(summarizer.summary), /\n50 % of 2 attempts are in neither loss .*\nALARM: task .*50 %/);
  const { rollouts, attempts, in_loss, calls } = summarizer.summary;
  assert.deepEqual([rollouts, attempts, in_loss, calls], [1, 2, 1, 2]);
  assert.match(renderSummary(summarizer.summary), /^1 rollouts in 2 attempts \(1 in the loss\), 2 calls/);
});

test("a rollout that is too long for a row has a dummy in its place, and the sum says so", () => {
  const log = new LogBuilder();
  log.call({ messages: [user("u")], says: assistant("ok") });
  const summarizer = new FidelitySummarizer({ maxTokens: 1 });
  summarizer.add(reconstruct(log.entries));
  assert.deepEqual([summarizer.summary.rows, summarizer.summary.dummy_rows], [1, 1]);
  assert.match(renderSummary(summarizer.summary), /1 rows \(1 of them dummies\): 0 tokens/);
});

test("a run without calls is summed up as what it is", () => {
  const summarizer = new FidelitySummarizer({});
  assert.match(renderSummary(summarizer.summary), /0 rollouts.*\n0 sampled tokens, 0 trained\n0 rows/);
  assert.match(renderSummary(summarizer.summary), /No context parts/);
});
