/**
 * The trainers' own code on the files that our exporters write from sessions of a real model: what they would train has
 * an importance ratio of 1 under the model that sampled it, on every token. Nothing is forced on the model, for what is
 * sampled under a mask is not what a trainer's model would say.
 */
import assert from "node:assert/strict";
import { createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { exportTrajectories } from "../../../exporters/export-trajectories.ts";
import { exporterNamed } from "../../../exporters/registry.ts";
import { selectRows } from "../../../reconstruct/index.ts";
import { need } from "../../needs.ts";
import { startVllm } from "../vllm/start.ts";
import { recordSessions } from "./record-sessions.ts";
import { shiftLogprobs } from "./shifted.ts";
import { type Answer, askTrainers, type Question, type Trainer, trainers } from "./trainers.ts";

/** Sampled by vLLM, computed again by transformers, both in float32. */
const tolerance = 1e-4;

test("every trainer's own code finds a ratio of 1 on every token that it trains", { timeout: 900_000 }, async (t) => {
  if (!(await need(t, "consumers")) || !(await need(t, "vllm"))) return;
  const folder = await mkdtemp(join(tmpdir(), "alidade-consumers-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const recorded = await record(t);
  if (recorded === null) return;
  const { trajectories, model } = recorded;
  for (const { rollout_id, fidelity } of trajectories) t.diagnostic(`${rollout_id}: ${JSON.stringify(fidelity)}`);
  const questions = await Promise.all(trainers.map((trainer) => ask(trainer, trajectories, folder)));
  // Two processes for two cores: the second half imports Ray.
  const half = trainers.findIndex(({ name }) => name === "verl");
  const halves = [questions.slice(0, half), questions.slice(half)];
  const answers = await Promise.all(halves.map((some) => Array.fromAsync(askTrainers(model, some, folder, t.signal))));
  for (const answer of answers.flat()) {
    const trainer = trainers.find(({ name }) => name === answer.trainer);
    assert.ok(trainer);
    await t.test(`${trainer.name} reads ${trainer.format}`, (t) =>
      judge(t.diagnostic.bind(t), answer, trainedTokens(trainer, trajectories)),
    );
  }
});

/** vLLM has ended before the trainers begin: they need its memory. */
async function record(t: TestContext): ReturnType<typeof recordSessions> {
  await using vllm = await startVllm(t.signal);
  return await recordSessions(t, vllm);
}

async function ask({ name, format }: Trainer, trajectories: Trajectory[], folder: string): Promise<Question> {
  const [file, shifted] = [join(folder, `${name}.jsonl`), join(folder, `${name}-shifted.jsonl`)];
  const exporter = exporterNamed(format);
  await exportTrajectories(exporter, trajectories, createWriteStream(file));
  await exportTrajectories(exporter, trajectories.map(shiftLogprobs), createWriteStream(shifted));
  return { trainer: name, file, shifted };
}

function trainedTokens({ rows }: Trainer, trajectories: Trajectory[]): number {
  const perRollout = trajectories.map((trajectory) => [...selectRows(trajectory).rows].map((row) => row.trained_tokens));
  const trained = {
    all: (each: number[]) => each,
    longest: (each: number[]) => [Math.max(...each)],
    first: (each: number[]) => each.slice(0, 1),
  };
  return perRollout.flatMap(trained[rows]).reduce((sum, tokens) => sum + tokens, 0);
}

function judge(say: (message: string) => void, answer: Answer, expected: number): void {
  assert.equal(answer.error, undefined);
  const { version, trained, worst, shifted, seconds } = answer;
  say(
    `${version}: ${trained} tokens, worst |ratio - 1| = ${worst?.toExponential(1)}, one token late ${shifted?.toExponential(1)}, ${seconds} s`,
  );
  assert.equal(trained, expected, "the trainer trains other tokens than we selected");
  assert.ok(typeof worst === "number" && worst <= tolerance, `${worst} is more than ${tolerance}`);
  // A thousand times the tolerance: a file that is one token off cannot pass by luck.
  assert.ok(typeof shifted === "number" && shifted > 1_000 * tolerance, `one token late is only ${shifted}: the comparison sees nothing`);
}
