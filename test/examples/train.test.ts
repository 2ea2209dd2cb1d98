/** A small `npm run train`: checks its output and files, that its ratios are exact, and that the reward rises. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { drawCurve } from "../../examples/train/curve.ts";
import { TrainedStep } from "../../examples/train/trained-step.ts";
import { pi } from "../../harnesses/pi.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { root } from "../fakes/processes/cli.ts";
import { installedPack } from "../harness/installed-pack.ts";
import { consumersPlace } from "../interop/consumers/place.ts";
import { startOwnVllm } from "../interop/vllm/start.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("train");

test("without PyTorch, one sentence says what is missing, and no run is made", async (t) => {
  const { code, stderr } = await train(t, ["--python", "/bin/false", "--out", join(scratch, "none")]);
  assert.equal(code, 2);
  assert.equal(stderr.trim().split("\n").length, 1);
  assert.match(stderr, /--python \/bin\/false has no PyTorch: name one that has it, or run `pip install torch/);
  await assert.rejects(readdir(join(scratch, "none")));
});

for (const [argv, says] of [
  [["--harness", "qwen-code"], /--harness is "qwen-code": the model was taught to play with pi, codex, claude-code/],
  [["--engine", "http://127.0.0.1:8000"], /--engine stands alone: give --policy too/],
  [["--trainer", "torch"], /--trainer is "torch": choose one of pytorch, trl/],
  [["--trainer", "trl", "--max-version-lag", "1"], /--max-version-lag is only for --trainer pytorch: leave it out/],
  [["--trainer", "trl", "--python", "/bin/false"], /--python \/bin\/false has no TRL: name one that has it, or run `pip install trl`/],
  [["--steps", "0"], /--steps is "0": give a whole number of at least 1/],
] as const)
  test(`${argv.join(" ")} is refused in one sentence`, async (t) => {
    const { code, stderr } = await train(t, [...argv, "--out", join(scratch, "none")]);
    assert.equal(code, 2);
    assert.equal(stderr.trim().split("\n").length, 1);
    assert.match(stderr, says);
  });

test("the policy learns what the hidden tests reward, with exact ratios", { timeout: 1_500_000 }, async (t) => {
  if (!(await need(t, "consumers")) || (await installedPack(t, pi)) === null) return;
  const { steps, stdout, svg } = await trained(t, "learns", ["--steps", "6"]);
  assertLearned(steps);
  assert.match(svg, /Mean reward/);
  assert.match(stdout, /Mean reward \d+ % → \d+ % after \d+ updates/);
});

test("with rewards that are shuffled within each group, the policy does not learn", { timeout: 1_500_000 }, async (t) => {
  if (!(await need(t, "consumers")) || (await installedPack(t, pi)) === null) return;
  const { steps } = await trained(t, "control", ["--steps", "4", "--shuffle-rewards"]);
  const rewards = steps.map(({ reward }) => reward);
  assert.ok(lastTwo(rewards) <= (rewards[0] ?? 0) + 0.35, JSON.stringify(rewards));
});

test("the same policy learns the same on a real vLLM, with exact ratios", { timeout: 1_500_000 }, async (t) => {
  for (const one of ["vllm", "consumers"] as const) if (!(await need(t, one))) return;
  if ((await installedPack(t, pi)) === null) return;
  const policy = join(scratch, "policy");
  await promisify(execFile)(join(consumersPlace(), "venv/bin/python"), [join(root, "examples/train/untie.py"), policy]);
  await using vllm = await startOwnVllm(policy, t.signal, parsers);
  const { steps } = await trained(t, "vllm", ["--engine", vllm.url, "--policy", policy, "--steps", "6"]);
  assertLearned(steps);
});

test("a curve has one line for the mean and one for each task, with gaps at steps that were not measured", () => {
  const seconds = { update: 0.1, sample: 9, train: 3 };
  const step = {
    step: 0,
    reward: 0.5,
    rewards: { a: 0.25, "<b>": null },
    rollouts: 8,
    worst_ratio: 2e-6,
    lag: null,
    trained_tokens: 100,
    seconds,
  };
  const svg = drawCurve([step, { ...step, step: 1, rewards: { a: 1, "<b>": 0 } }], "Mean reward");
  assert.equal(svg.match(/<path /g)?.length, 3);
  assert.match(svg, /&lt;b>/);
  assert.equal(svg.match(/d="M[^ML"]*L[^ML"]*"/g)?.length, 2, "two whole lines");
  assert.match(drawCurve([], "Mean reward"), /^<svg /);
});

/** As docs/learning.md starts it: a turn without a thought is text. */
const parsers = ["--reasoning-parser", "deepseek_v4", "--default-chat-template-kwargs", '{"thinking": false}'];

/** Every rollout was rewarded, each batch was sampled by the weights that train on it, and the reward rose. */
function assertLearned(steps: TrainedStep[]): void {
  for (const { rollouts, worst_ratio, lag, step } of steps) {
    assert.equal(rollouts, 24, `step ${step} has no reward of some rollouts`);
    assert.equal(lag, 0);
    assert.ok(worst_ratio < 1e-3, `step ${step}: ${worst_ratio}`);
  }
  const rewards = steps.map(({ reward }) => reward);
  // By chance alone the mean of two steps differs from a step by 0.1.
  assert.ok(lastTwo(rewards) >= (rewards[0] ?? 1) + 0.2, JSON.stringify(rewards));
}

function lastTwo(rewards: number[]): number {
  const [one = 0, other = 0] = rewards.slice(-2);
  return (one + other) / 2;
}

type Done = { code: number | null; stdout: string; stderr: string };

async function train(t: TestContext, argv: string[]): Promise<Done> {
  const env = { ...process.env, CUDA_VISIBLE_DEVICES: "", OMP_NUM_THREADS: "1" };
  const child = spawn(process.execPath, [join(root, "examples/train/train.ts"), ...argv], { env, stdio: ["ignore", "pipe", "pipe"] });
  t.signal.addEventListener("abort", () => child.kill("SIGINT"));
  const done: Done = { code: null, stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].setEncoding("utf8").on("data", (text: string) => {
      done[name] += text;
    });
  [done.code] = await once(child, "close");
  return done;
}

async function trained(t: TestContext, name: string, argv: string[]) {
  const out = join(scratch, name);
  const { code, stdout, stderr } = await train(t, ["--python", join(consumersPlace(), "venv/bin/python"), "--out", out, ...argv]);
  t.diagnostic(stdout);
  assert.equal(code, 0, stderr.slice(-4_000));
  const [run = ""] = await readdir(out);
  const lines = (await readFile(join(out, run, "steps.jsonl"), "utf8")).trim().split("\n");
  const svg = await readFile(join(out, run, "curve.svg"), "utf8");
  return { steps: lines.map((line) => TrainedStep.parse(JSON.parse(line))), stdout, svg };
}
