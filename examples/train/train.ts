/**
 * `npm run train`: trains a policy on this machine. The embedded engine serves a taught model of 176 k parameters. The unmodified
 * Pi asks it, and hidden tests give the reward. PyTorch trains it on the recorded rollouts. The service's gate is closed while
 * new weights are loaded. docs/learning.md explains the output.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { basename, delimiter, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { AlidadeError } from "../../base/errors.ts";
import { BoundedOutput } from "../../base/host/bounded-output.ts";
import { newId } from "../../base/schema/ids.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { fail, print, say } from "../../cli/commands/command-line.ts";
import { terminal } from "../../cli/commands/terminal.ts";
import { startPracticeEngine } from "../../practice/index.ts";
import { backendNames } from "../../sandboxes/registry.ts";
import { drawCurve } from "./curve.ts";
import { taughtBudgets, taughtModel, taughtTasks } from "./taught.ts";
import { TrainedStep } from "./trained-step.ts";

const here = fileURLToPath(new URL("./", import.meta.url));
const root = fileURLToPath(new URL("../../", import.meta.url));

/** How much of a process's output is kept for its error message. */
const saidKept = 4_000;

const defaults = {
  python: "python3",
  steps: "24",
  enough: "0.85",
  samples: "8",
  seed: "1",
  rate: "0.001",
  epochs: "3",
  "max-version-lag": "0",
  sandbox: "process",
  concurrency: String(2 * availableParallelism()),
  out: "runs",
};

const usage = `npm run train -- [options]

  --python <path>    a Python 3.9 or newer with PyTorch (${defaults.python})
  --steps <n>        updates at most (${defaults.steps}); it ends before, when two steps in a row earn --enough
  --enough <reward>  mean reward that is enough (${defaults.enough})
  --samples <n>      rollouts of each task a step (${defaults.samples})
  --seed <n>         of what is sampled (${defaults.seed})
  --rate <n>         learning rate (${defaults.rate})
  --epochs <n>       passes over each batch (${defaults.epochs})
  --max-version-lag <n>   steps that rollouts may be sampled ahead of their training (${defaults["max-version-lag"]})
  --shuffle-rewards  the control: within each group, rewards go to rollouts by lot
  --sandbox <name>   ${backendNames.join(", ")} (default: ${defaults.sandbox})
  --concurrency <n>  rollouts at once (twice the cores: ${defaults.concurrency})
  --out <folder>     where the run is left (${defaults.out})`;

/** The smallest whole number that each flag takes. */
const wholeNumbers = { steps: 1, samples: 1, seed: 0, epochs: 1, "max-version-lag": 0, concurrency: 1 } as const;

async function train(): Promise<void> {
  const { values: flags } = parseArgs({
    options: {
      python: { type: "string", default: defaults.python },
      steps: { type: "string", default: defaults.steps },
      enough: { type: "string", default: defaults.enough },
      samples: { type: "string", default: defaults.samples },
      seed: { type: "string", default: defaults.seed },
      rate: { type: "string", default: defaults.rate },
      epochs: { type: "string", default: defaults.epochs },
      "max-version-lag": { type: "string", default: defaults["max-version-lag"] },
      "shuffle-rewards": { type: "boolean", default: false },
      sandbox: { type: "string", default: defaults.sandbox },
      concurrency: { type: "string", default: defaults.concurrency },
      out: { type: "string", default: defaults.out },
      help: { type: "boolean" },
    },
  });
  if (flags.help) return say(usage);
  for (const [flag, least] of Object.entries(wholeNumbers)) assertWhole(flag, flags[flag as keyof typeof wholeNumbers], least);
  for (const flag of ["enough", "rate"] as const) assertNumber(flag, flags[flag]);
  const signal = terminal().stopSignal();
  assertPyTorch(flags.python);
  const place = resolve(flags.out, `train-${newId("run").slice(3, 11)}`);
  const policy = join(place, "policy");
  await mkdir(place, { recursive: true });
  await cp(taughtModel, policy, { recursive: true });
  const tasks = taughtTasks.map((folder) => basename(folder));
  say(`alidade train: ${tasks.length} tasks × ${flags.samples} rollouts a step with pi; the run is left in ${place}`);
  say("  The policy may say anything: nothing forces it. In process sandboxes that runs as this user; --sandbox docker isolates it.\n");

  await using engine = await startPracticeEngine({ weights: policy, model: "taught", seed: Number(flags.seed), signal });
  await using service = await startService({ place, engine: engine.url, sandbox: flags.sandbox, concurrency: flags.concurrency });
  const steps: TrainedStep[] = [];
  const asked = {
    ...{ policy, engine: engine.url, service: service.folder, samples: flags.samples, steps: flags.steps, enough: flags.enough },
    ...{ seed: flags.seed, rate: flags.rate, epochs: flags.epochs, "max-version-lag": flags["max-version-lag"] },
  };
  const argv = [
    ...Object.entries(asked).map(([name, value]) => `--${name}=${value}`),
    ...tasks.map((task) => `--task=${task}`),
    ...(flags["shuffle-rewards"] ? ["--shuffle-rewards"] : []),
  ];
  for await (const step of trainer(flags.python, argv, signal)) {
    if (steps.length === 0) print(headLine(tasks));
    steps.push(step);
    print(stepLine(step, tasks));
    await writeFile(join(place, "steps.jsonl"), steps.map((one) => `${JSON.stringify(one)}\n`).join(""));
    await writeFile(
      join(place, "curve.svg"),
      drawCurve(steps, flags["shuffle-rewards"] ? "Rewards shuffled within each group" : "Mean reward"),
    );
  }
  const [first, last] = [steps[0], steps.at(-1)];
  if (first && last) print(`\n  Mean reward ${percent(first.reward)} → ${percent(last.reward)} after ${last.step} updates.`);
  print(`  ${join(place, "curve.svg")}   the curve\n  ${join(place, "steps.jsonl")}   its numbers\n  ${policy}   the trained weights`);
}

function assertPyTorch(python: string): void {
  const found = spawnSync(python, ["-c", "import sys, torch; assert sys.version_info >= (3, 9)"], { encoding: "utf8" });
  if (found.status === 0) return;
  throw new AlidadeError(
    "config_invalid",
    `--python ${python} has no PyTorch: name one that has it, or run \`pip install torch --index-url https://download.pytorch.org/whl/cpu\``,
    { param: "python" },
  );
}

function assertWhole(flag: string, text: string, least: number): void {
  if (/^\d{1,9}$/.test(text) && Number(text) >= least) return;
  throw new AlidadeError("config_invalid", `--${flag} is "${text}": give a whole number of at least ${least}`, { param: flag });
}

function assertNumber(flag: string, text: string): void {
  if (text.trim() !== "" && Number.isFinite(Number(text)) && Number(text) > 0) return;
  throw new AlidadeError("config_invalid", `--${flag} is "${text}": give a number above 0`, { param: flag });
}

type ServiceOptions = { place: string; engine: string; sandbox: string; concurrency: string };

/** Starts the service in a process of its own, as a user does. */
async function startService({ place, engine, sandbox, concurrency }: ServiceOptions): Promise<AsyncDisposable & { folder: string }> {
  const config = {
    ...{ engine: { url: engine }, harness: "pi", sandbox, unsafe_host: sandbox === "process", out: place },
    budgets: taughtBudgets,
    tasks: taughtTasks,
  };
  const file = join(place, "run.yaml");
  await writeFile(file, JSON.stringify(config));
  const argv = [join(root, "bin/alidade.js"), "service", "-c", file, "-p", "0", "--json", "--concurrency", concurrency];
  const child = spawn(process.execPath, argv, { stdio: ["ignore", "pipe", "pipe"] });
  const said = new BoundedOutput(saidKept, "end").follow(child.stderr);
  const ended = once(child, "close");
  const listens = await Promise.race([once(createInterface({ input: child.stdout }), "line"), ended.then(() => null)]);
  if (listens === null) throw new AlidadeError("internal", `alidade service did not start: ${said}`);
  return { folder: join(place, "service"), [Symbol.asyncDispose]: () => stopped(child, ended) };
}

/** Rollouts that still run were sampled ahead for steps that do not follow: the second signal cancels them. */
async function stopped(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGINT");
  await Promise.race([ended, new Promise((after) => setTimeout(after, 2_000).unref())]);
  child.kill("SIGINT");
  await ended;
}

/** Yields each step when it is done. If the trainer fails, throws an error with the end of its output. */
async function* trainer(python: string, argv: string[], signal: AbortSignal): AsyncGenerator<TrainedStep> {
  const env = {
    ...process.env,
    PYTHONPATH: [join(root, "clients/python"), process.env.PYTHONPATH].filter(Boolean).join(delimiter),
    PYTHONDONTWRITEBYTECODE: "1",
  };
  const child = spawn(python, [join(here, "train.py"), ...argv], { env, stdio: ["ignore", "pipe", "pipe"] });
  const said = new BoundedOutput(saidKept, "end").follow(child.stderr);
  const ended = once(child, "close");
  const stop = () => child.kill("SIGKILL");
  signal.addEventListener("abort", stop, { once: true });
  let isWhole = false;
  try {
    for await (const line of createInterface({ input: child.stdout })) yield TrainedStep.parse(readJson(line));
    isWhole = true;
  } finally {
    signal.removeEventListener("abort", stop);
    if (!isWhole) stop();
  }
  const [code] = await ended;
  signal.throwIfAborted();
  if (code !== 0) throw new AlidadeError("internal", `the trainer ended with ${code}: ${said}`);
}

function headLine(tasks: string[]): string {
  return ["step", "reward", ...tasks, "worst |ratio−1|", "lag", "update", "sample", "train"].join("  ");
}

function stepLine({ step, reward, rewards, worst_ratio, lag, seconds }: TrainedStep, tasks: string[]): string {
  const cells = [
    [String(step), 4],
    [percent(reward), 6],
    ...tasks.map((task) => [percent(rewards[task] ?? null), task.length] as const),
    [worst_ratio.toExponential(1), "worst |ratio−1|".length],
    [lag === null ? "–" : String(lag), 3],
    ...(["update", "sample", "train"] as const).map((phase) => [`${seconds[phase].toFixed(1)} s`, phase.length] as const),
  ] as const;
  return cells.map(([text, width]) => text.padStart(width)).join("  ");
}

function percent(share: number | null): string {
  return share === null ? "–" : `${Math.round(100 * share)} %`;
}

await train().catch((error: unknown) => {
  terminal().exitCode = fail(error, false);
});
