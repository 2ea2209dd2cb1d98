/**
 * The gradient of trainers' losses, by arithmetic: what a rollout in several rows does to the policy is what the same
 * rollout in one row does, under each aggregation and with the weight that goes with it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Message } from "../../../base/schema/message.ts";
import { type Aggregation, aggregations, type FlatRow, selectRows } from "../../../reconstruct/index.ts";
import { assistant, LogBuilder, user } from "../../fakes/records/log-builder.ts";
import { rebuilt } from "../rebuilt.ts";

/** A rollout of `turns` append-only turns: one strict row, and a row a turn under `per-call`. */
function rollout(id: string, turns: number) {
  const log = new LogBuilder({ rollout_id: id });
  let messages: Message[] = [user(`task of ${id}`)];
  for (let at = 0; at < turns; at++) {
    const says = assistant(Array.from({ length: at + 1 }, (_, word) => `w${word}`).join(" "));
    log.call({ messages, says });
    messages = [...messages, says, user("go on")];
  }
  return rebuilt(log);
}

type Row = FlatRow & { advantage: number };

function rowsOf(strategy: "strict" | "per-call", aggregation: Aggregation): Row[] {
  const batch = [
    { trajectory: rollout("one", 4), advantage: 0.7 },
    { trajectory: rollout("two", 1), advantage: -0.4 },
    { trajectory: rollout("three", 2), advantage: -0.3 },
  ];
  return batch.flatMap(({ trajectory, advantage }, index) => {
    // Only the first rollout forks.
    const { rows } = selectRows(trajectory, { strategy: index === 0 ? strategy : "strict", aggregation });
    return [...rows].map((row) => ({ ...row, advantage }));
  });
}

/** The name of a trained token: whose it is and where in its call; so that rows can be compared that hold it elsewhere. */
function tokensOf(row: Row): (string | null)[] {
  const names: (string | null)[] = row.token_ids.map(() => null);
  for (const { start, end, call_id, trainable } of row.segments)
    for (let at = start; trainable && at < end; at++) if (row.loss_mask[at] === 1) names[at] = `${row.rollout_id} ${call_id} ${at - start}`;
  return names;
}

/** PPO's clipped surrogate of one token, negated; `drift` moves the policy away from the one that sampled. */
function tokenLoss(advantage: number, drift: number): number {
  const ratio = Math.exp(drift);
  return -Math.min(ratio * advantage, Math.min(Math.max(ratio, 0.8), 1.2) * advantage);
}

/** How each kind of trainer makes one number of the batch. `losses`: row by row, of its trained tokens. */
const trainers: Record<Aggregation, (rows: Row[], losses: number[][]) => number> = {
  token_mean: (_, losses) => sum(losses.flat()) / losses.flat().length,
  sequence_mean: (rows, losses) => {
    const means = losses.map((row, at) => (rows[at]!.weight * sum(row)) / row.length);
    return sum(means) / sum(rows.map((row) => row.weight));
  },
  sequence_sum: (rows, losses) => sum(losses.map((row, at) => rows[at]!.weight * sum(row))) / 4096,
  rollout_mean: (rows, losses) => {
    const ids = [...new Set(rows.map((row) => row.rollout_id))];
    const maskSum = (id: string | null) => sum(rows.map((row, at) => (row.rollout_id === id ? losses[at]!.length : 0)));
    return sum(rows.map((row, at) => sum(losses[at]!) / maskSum(row.rollout_id))) / ids.length;
  },
};

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);

/** d loss / d logprob of every trained token, by a central difference. */
function gradient(rows: Row[], aggregation: Aggregation): Map<string, number> {
  const names = rows.map((row) => tokensOf(row).filter((name) => name !== null));
  const drifts = new Map(names.flat().map((name, at) => [name, ((at % 5) - 2) * 0.07]));
  const loss = (moved: string, by: number) =>
    trainers[aggregation](
      rows,
      rows.map((row, at) => names[at]!.map((name) => tokenLoss(row.advantage, drifts.get(name)! + (name === moved ? by : 0)))),
    );
  const step = 1e-5;
  return new Map(names.flat().map((name) => [name, (loss(name, step) - loss(name, -step)) / (2 * step)]));
}

function distance(a: Map<string, number>, b: Map<string, number>): number {
  assert.deepEqual([...a.keys()].sort(), [...b.keys()].sort());
  return Math.max(...[...a].map(([name, value]) => Math.abs(value - b.get(name)!)));
}

for (const aggregation of aggregations)
  test(`${aggregation}: a rollout in four rows gives the gradient of the same rollout in one`, () => {
    const [whole, split] = [rowsOf("strict", aggregation), rowsOf("per-call", aggregation)];
    assert.deepEqual([whole.length, split.length], [3, 6]);
    const [one, many] = [gradient(whole, aggregation), gradient(split, aggregation)];
    assert.ok(Math.max(...[...one.values()].map(Math.abs)) > 1e-5);
    assert.ok(distance(one, many) < 1e-9, `the gradients differ by ${distance(one, many)}`);
  });

test("without its weight a split rollout counts as many, and its short turns more than its long ones", () => {
  const split = rowsOf("per-call", "sequence_mean").map((row) => ({ ...row, weight: 1 }));
  assert.ok(distance(gradient(rowsOf("strict", "sequence_mean"), "sequence_mean"), gradient(split, "sequence_mean")) > 0.01);
});

test("a trainer that divides by its number of rows scales the whole batch alike, by rollouts over rows", () => {
  const byRows = (rows: Row[]) => {
    const weights = sum(rows.map((row) => row.weight));
    return new Map([...gradient(rows, "sequence_mean")].map(([name, value]) => [name, (value * weights) / rows.length]));
  };
  const [one, many] = [byRows(rowsOf("strict", "sequence_mean")), byRows(rowsOf("per-call", "sequence_mean"))];
  for (const [name, value] of one) if (Math.abs(value) > 1e-6) assert.ok(Math.abs(many.get(name)! / value - 3 / 6) < 1e-6);
});
