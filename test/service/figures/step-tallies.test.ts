/** Results folded into figures by policy step. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { attemptFigures, KeptSteps, StepTallies, stepFigures, type TalliedRow } from "../../../service/figures/index.ts";
import type { AttemptFigures } from "../../../service/ledger/index.ts";
import { attemptResult } from "../../fakes/records/attempt-result.ts";
import { assistant, LogBuilder, user } from "../../fakes/records/log-builder.ts";

const figures = (more: Partial<AttemptFigures> = {}): AttemptFigures => ({
  ...{ data_source: null, is_cut: false, edges: {}, row_tokens: 0, tree_tokens: 0, prompt_tokens: 0, cached_tokens: 0 },
  ...{ excluded: {}, causes: {}, engine_spans: [] },
  ...more,
});
const row = (step: number | null, more: Partial<TalliedRow> = {}): TalliedRow => ({
  ...attemptResult({ newest_step: step, figures: figures() }),
  ...{ stale: null, policy_step: null },
  ...more,
});

/** Its engine told how much of the prompt it had in its cache. */
const withCache = (call: Trajectory["calls"][number]): typeof call => ({
  ...call,
  usage: call.usage && { ...call.usage, cached_tokens: 0 },
});

test("each result counts at the newest step that sampled it, one that sampled nothing at the step in force when it ended", () => {
  const tallies = new StepTallies();
  for (const one of [row(3), row(1), row(null), row(null, { sampled_tokens: 0, policy_step: 3, state: "cancelled", reward: null })])
    tallies.addRow(one);
  assert.deepEqual(
    tallies.latest(9).map(({ policy_step, results }) => [policy_step, results]),
    [
      [null, 1],
      [1, 1],
      [3, 2],
    ],
  );
  assert.deepEqual(
    tallies.latest(1).map(({ policy_step }) => policy_step),
    [null, 3],
    "an unknown step hides no known one",
  );
  const { cancelled_ratio, null_ratio } = tallies.latest(1)[1]?.figures ?? {};
  assert.deepEqual([cancelled_ratio?.value, null_ratio?.value], [0.5, 0], "a cancelled result is no null");
});

test("each figure says what it is made of, and an unknown one is null with its reason and never 0", () => {
  const tallies = new StepTallies();
  const edges = { root: 1, exact: 3, same_text: 1, diverged: 0, unknown: 2 };
  const measured = figures({ edges, row_tokens: 30, tree_tokens: 20, is_cut: true, prompt_tokens: 40, cached_tokens: 10 });
  const rows = [row(1, { reward: 0, stale: true, figures: measured }), row(1, { reward: 0, stale: false }), row(1, { reward: null })];
  for (const one of rows) tallies.addRow(one);
  tallies.addGroup(rows);
  tallies.addRow(row(2, { reward: null, figures: null }));
  const [first, second] = tallies.latest(9);
  assert.deepEqual(Object.fromEntries(Object.entries(first?.figures ?? {}).map(([name, { value }]) => [name, value])), {
    ...{ pass_ratio: 0, no_variance_ratio: 1, null_ratio: 1 / 3, cancelled_ratio: 0, cut_ratio: 1 / 3, stale_ratio: 0.5 },
    ...{ inexact_edge_ratio: 0.25, row_inflation: 1.5, cache_hit_ratio: 0.25, engine_busy_ratio: null },
  });
  assert.deepEqual([first?.figures.inexact_edge_ratio.part, first?.figures.inexact_edge_ratio.whole], [1, 4]);
  for (const name of ["pass_ratio", "no_variance_ratio", "cut_ratio", "stale_ratio", "row_inflation", "cache_hit_ratio"] as const) {
    const { value, whole, reason } = second?.figures[name] ?? {};
    assert.deepEqual([value, whole, typeof reason], [null, 0, "string"], name);
  }
});

test("pass ratios by data source are the users' own words: those of hostile names are counted, and further ones are left out", () => {
  const tallies = new StepTallies();
  const of = (data_source: string | null, reward: number) => row(1, { reward, figures: figures({ data_source }) });
  for (const one of [of("__proto__", 1), of("__proto__", 0), of(null, 1)]) tallies.addRow(one);
  for (let at = 0; at < 100; at++) tallies.addRow(of(`source ${at}`, 1));
  const [{ pass_by_source, sources_left_out } = { pass_by_source: [], sources_left_out: 0 }] = tallies.latest(1);
  assert.deepEqual([pass_by_source.length, sources_left_out], [100, 2]);
  assert.deepEqual(pass_by_source[0], { data_source: "__proto__", value: 0.5, part: 1, whole: 2, reason: null });
});

test("an attempt's figures are counted from its trajectory", () => {
  const log = new LogBuilder();
  const asked = [user("one two")];
  const first = log.call({ messages: asked, says: assistant("ok") });
  log.call({ messages: [...asked, assistant("ok"), user("more")], says: assistant("done"), parent: first });
  log.call({ messages: [user("another")], says: assistant("ok") });
  const trajectory = reconstruct(log.entries);
  const { edges, row_tokens, tree_tokens, is_cut } = attemptFigures(trajectory);
  assert.deepEqual([edges, is_cut], [trajectory.fidelity.matches, false]);
  assert.ok(row_tokens >= tree_tokens && tree_tokens > 0);
});

test("what a fork replays is counted once, by the rollout that sampled it", () => {
  const log = new LogBuilder();
  const [asked, said] = [[user("one two")], assistant("ok")];
  const first = log.call({ messages: asked, says: said, replayed_from: "call00000000000000000000" });
  log.call({ messages: [...asked, said, user("more")], says: assistant("done now"), parent: first });
  const { calls, fidelity, ...trajectory } = reconstruct(log.entries);
  const own = calls[1] ?? assert.fail();
  const fork = attemptFigures({ ...trajectory, calls: calls.map(withCache), fidelity });
  assert.equal(fork.prompt_tokens, own.usage?.prompt_tokens);
  const tallies = new StepTallies();
  tallies.addRow(row(1, { sampled_tokens: fidelity.sampled_tokens, figures: fork }));
  assert.equal(tallies.toKept().steps[0]?.tally.sampled_tokens, own.sampled_length);
  assert.deepEqual([fidelity.sampled_tokens, fidelity.replayed_tokens], [own.sampled_length, calls[0]?.sampled_length]);
  const earlier = row(2, { sampled_tokens: 5, figures: { ...fork, excluded: { replayed: 3 } } });
  tallies.addRow(earlier);
  assert.equal(
    tallies.toKept().steps.find(({ step }) => step === 2)?.tally.sampled_tokens,
    2,
    "an earlier version counted them as sampled",
  );
});

test("docs/figures.md has each figure as it is defined", async () => {
  const page = await readFile(new URL("../../../docs/figures.md", import.meta.url), "utf8");
  for (const { name, what } of stepFigures) assert.ok(page.includes(`| \`${name}\` | ${what} |`), name);
});

test("what is kept of tallies goes on as they would have", () => {
  const spans = (step: number, from: number) =>
    figures({ data_source: `s${step}`, engine_spans: [{ engine: "e", step, times: [from, 10] }] });
  const rows = [1, 2, 2, 3].map((step, at) => row(step, { reward: at % 2, figures: spans(step, 100 * at) }));
  const [whole, first] = [new StepTallies(3), new StepTallies(3)];
  for (const one of rows.slice(0, 2)) for (const tallies of [whole, first]) tallies.addRow(one);
  for (const tallies of [whole, first]) tallies.addGroup(rows.slice(0, 2));
  const then = new StepTallies(3, KeptSteps.parse(JSON.parse(JSON.stringify(first.toKept()))));
  for (const one of [...rows.slice(2), row(null, { figures: figures({ engine_spans: null }) })])
    for (const tallies of [whole, then]) tallies.addRow(one);
  assert.deepEqual(then.latest(9), whole.latest(9));
  assert.deepEqual(then.total, whole.total);
});
