/**
 * TRL's and verl's own loops on the tasks and the policy of `npm run train` (docs/learning.md): the reward rises. It takes long, so
 * it is run by hand:
 *
 *     ALIDADE_TEST_RISES=1 npm test -- trainers/rises
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { type TestContext, test } from "node:test";
import { taughtTasks } from "../../../examples/train/taught.ts";
import { TrainedStep } from "../../../examples/train/trained-step.ts";
import { pi } from "../../../harnesses/pi.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { root } from "../../fakes/processes/cli.ts";
import { installedPack } from "../../harness/installed-pack.ts";
import { need } from "../../needs.ts";
import { consumersPlace } from "../consumers/place.ts";
import { startTaughtRig } from "./start-rig.ts";
import { startTrainer } from "./start-trainer.ts";

const scratch = scratchFolder("rises");
const timeout = 1_500_000;
/** Sampled by the embedded engine, computed again by transformers, both in float32. */
const tolerance = 1e-4;
const [atFirst, enough] = [0.5, 0.85];

/** What verl is configured with besides what the rig says: three passes over a batch, and what divergence costs. */
const verl = [
  "actor_rollout_ref.actor.optim.lr=1e-3",
  "actor_rollout_ref.actor.optim.weight_decay=0",
  "actor_rollout_ref.actor.ppo_epochs=3",
  "actor_rollout_ref.actor.use_kl_loss=True",
  "actor_rollout_ref.actor.kl_loss_coef=0.1",
];

test("verl's own loop learns three tasks that Pi plays", { timeout }, async (t) => {
  if (!(await isAsked(t))) return;
  const folder = join(scratch, "verl");
  await mkdir(folder);
  const steps: TrainedStep[] = [];
  const onRise = (step: TrainedStep) => {
    steps.push(step);
    t.diagnostic(JSON.stringify(step));
  };
  const trainer = startTrainer({ name: "verl", folder, signal: t.signal, onRise });
  await using rig = await startTaughtRig(folder, t.signal);
  const { engine, policy } = rig;
  const tasks = taughtTasks.map((task) => basename(task));
  await writeFile(join(folder, "rig.json"), JSON.stringify({ engine, policy, tasks, samples: 8, steps: 12, learning: { enough, verl } }));
  await trainer.ready;
  const { version } = await trainer.play();
  t.diagnostic(`verl ${version}`);
  assertRisen(steps);
});

test("TRL's own loop learns the same tasks: npm run train -- --trainer trl", { timeout }, async (t) => {
  if (!(await isAsked(t))) return;
  const out = join(scratch, "trl");
  const argv = [
    join(root, "examples/train/train.ts"),
    "--trainer",
    "trl",
    "--python",
    join(consumersPlace(), "venv/bin/python"),
    "--out",
    out,
  ];
  const child = spawn(process.execPath, argv, { stdio: ["ignore", "inherit", "inherit"], signal: t.signal, killSignal: "SIGINT" });
  const [code] = await once(child, "close");
  assert.equal(code, 0);
  const [run = ""] = await readdir(out);
  const lines = (await readFile(join(out, run, "steps.jsonl"), "utf8")).trim().split("\n");
  for (const line of lines) t.diagnostic(line);
  assertRisen(lines.map((line) => TrainedStep.parse(JSON.parse(line))));
});

async function isAsked(t: TestContext): Promise<boolean> {
  if (process.env.ALIDADE_TEST_RISES === "1") return (await need(t, "consumers")) && (await installedPack(t, pi)) !== null;
  const left = "ALIDADE_TEST_RISES is not 1; it takes many minutes, and is run by hand";
  t.diagnostic(left);
  // With ALIDADE_TEST_ALL it is only reported, and not counted as missing.
  if (process.env.ALIDADE_TEST_ALL !== "1") t.skip(left);
  return false;
}

function assertRisen(steps: TrainedStep[]): void {
  const rewards = steps.map(({ reward }) => reward);
  assert.ok((rewards[0] ?? 1) <= atFirst, `it earns ${rewards[0]} before it learns`);
  assert.ok(Math.min(...rewards.slice(-2)) >= enough, JSON.stringify(rewards));
  for (const { step, worst_ratio: worst, lag } of steps) {
    assert.ok(worst <= tolerance, `step ${step}: ${worst} is more than ${tolerance}`);
    assert.equal(lag, 0);
  }
}
