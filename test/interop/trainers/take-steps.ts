/** Trainers' own loops, one after the other, on one running service. */
import assert from "node:assert/strict";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { taughtModel } from "../vllm/place.ts";
import { startRig } from "./start-rig.ts";
import { type Step, startTrainer } from "./start-trainer.ts";

/** Sampled by vLLM, computed again by transformers, both in float32. */
const tolerance = 1e-4;
const wantedSteps = 3;
const rollouts = 8;

/** `rowsEach`: of a rollout. The harness talks twice, and a trainer that knows one row a rollout gets the longer one. */
export type Trainer = { name: string; rowsEach: "one" | "several"; paths?: string[] };

export async function takeSteps(t: TestContext, trainers: readonly Trainer[]): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-trainers-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const begin = ({ name, paths }: Trainer) => startTrainer({ name, folder, signal: t.signal, paths });
  const [first, ...rest] = trainers;
  assert.ok(first);
  let [now, started] = [first, begin(first)];
  await using rig = await startRig(folder, t.signal);
  await writeFile(join(folder, "rig.json"), JSON.stringify({ engine: rig.engine, policy: rig.policy }));
  for (const next of [...rest, null]) {
    const [{ name, rowsEach }, { ready, play }] = [now, started];
    await ready;
    // The next one is imported while this one waits for its rollouts.
    if (next !== null) [now, started] = [next, begin(next)];
    await cp(join(taughtModel(), "model.safetensors"), join(rig.policy, "model.safetensors"));
    await t.test(name, async (t) => judge(t, await play(), rowsEach));
  }
}

function judge(t: TestContext, { steps, version }: { steps: Step[]; version: string }, rowsEach: Trainer["rowsEach"]): void {
  for (const step of steps) t.diagnostic(`${version}: ${JSON.stringify(step)}`);
  assert.deepEqual(
    steps.map(({ step }) => step),
    Array.from({ length: wantedSteps }, (_, at) => at + 1),
  );
  for (const { step, worst, tokens, loss, exported, apart, rows, rollouts: counted } of steps) {
    assert.ok(worst <= tolerance, `step ${step}: ${worst} is more than ${tolerance}`);
    const difference = Math.max(Math.abs(loss - exported), apart);
    assert.ok(difference <= tolerance, `step ${step}: the loss is ${loss} live and ${exported} of the export, gradients ${apart} apart`);
    assert.ok(tokens > 0);
    assert.equal(counted, rollouts);
    if (rowsEach === "several") assert.ok(rows > counted, "no rollout has several rows");
    else assert.equal(rows, counted);
  }
}
