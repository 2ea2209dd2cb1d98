/**
 * `npm run train`: trains a policy on this machine. The embedded engine serves a taught model of 176 k parameters. An unmodified
 * harness asks it, and hidden tests give the reward. PyTorch trains it on the recorded rollouts. The service's gate is closed while
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
import { taughtBudgets, taughtHarnesses, taughtModel, taughtTasks } from "./taught.ts";
import { TrainedStep } from "./trained-step.ts";

const here = fileURLToPath(new URL("./", import.meta.url));
const root = fileURLToPath(new URL("../../", import.meta.url));

/** How much of a process's output is kept for its error message. */
const saidKept = 4_000;

/** The Python half of each trainer, the package that it needs, and the settings with which it learns. */
const trainers = {
  pytorch: {
    script: "train.py",
    ...{ needs: "torch", called: "PyTorch", installed: "torch --index-url https://download.pytorch.org/whl/cpu" },
    ...{ rate: "0.001", epochs: "3" },
  },
  trl: {
    script: "train_trl.py",
    ...{ needs: "trl", called: "TRL", installed: "trl" },
    ...{ rate: "0.001", epochs: "1" },
  },
} as const;
type Trainer = keyof typeof trainers;

const defaults = {
  python: "python3",
  trainer: "pytorch",
  harness: "pi",
  steps: "24",
  enough: "0.85",
  samples: "8",
  seed: "1",
  "max-version-lag": "0",
  sandbox: "process",
  concurrency: String(2 * availableParallelism()),
  out: "runs",
};

const usage = `npm run train -- [options]

  --python <path>    a Python 3.9 or newer with PyTorch (${defaults.python})
  --trainer <name>   ${Object.keys(trainers).join(", ")} (${defaults.trainer}); trl is TRL's GRPOTrainer (docs/learning.md)
  --harness <name>   ${taughtHarnesses.join(", ")} (${defaults.harness})
  --engine <url>     a vLLM that serves --policy, in place of the embedded engine (docs/learning.md)
  --policy <folder>  what --engine serves, made by examples/train/untie.py; its weights are replaced
  --steps <n>        updates at most (${defaults.steps}); it ends before, when two steps in a row earn --enough
  --enough <reward>  mean reward that is enough (${defaults.enough})
  --samples <n>      rollouts of each task a step (${defaults.samples})
  --seed <n>         of what is sampled (${defaults.seed})
  --rate <n>         learning rate (${perTrainer("rate")})
  --epochs <n>       passes over each batch (${perTrainer("epochs")})
  --max-version-lag <n>   steps that rollouts may be sampled ahead of their training (${defaults["max-version-lag"]}; not with trl)
  --shuffle-rewards  the control: within each group, rewards go to rollouts by lot (not with trl)
  --sandbox <name>   ${backendNames.join(", ")} (default: ${defaults.sandbox})
  --concurrency <n>  rollouts at once (twice the cores: ${defaults.concurrency})
  --out <folder>     where the run is left (${defaults.out})`;

/** What TRL's own estimate of the divergence from the taught model costs. */
const trlBeta = "0.1";

/** The smallest whole number that each flag takes. */
const wholeNumbers = { steps: 1, samples: 1, seed: 0, epochs: 1, "max-version-lag": 0, concurrency: 1 } as const;

async function train(): Promise<void> {
  const { values } = parseArgs({
    options: {
      python: { type: "string", default: defaults.python },
      trainer: { type: "string", default: defaults.trainer },
      harness: { type: "string", default: defaults.harness },
      engine: { type: "string" },
      policy: { type: "string" },
      steps: { type: "string", default: defaults.steps },
      enough: { type: "string", default: defaults.enough },
      samples: { type: "string", default: defaults.samples },
      seed: { type: "string", default: defaults.seed },
      rate: { type: "string" },
      epochs: { type: "string" },
      "max-version-lag": { type: "string", default: defaults["max-version-lag"] },
      "shuffle-rewards": { type: "boolean", default: false },
      sandbox: { type: "string", default: defaults.sandbox },
      concurrency: { type: "string", default: defaults.concurrency },
      out: { type: "string", default: defaults.out },
      help: { type: "boolean" },
    },
  });
  if (values.help) return say(usage);
  assertTrainer(values);
  const trainer = trainers[values.trainer];
  const flags = { ...values, rate: values.rate ?? trainer.rate, epochs: values.epochs ?? trainer.epochs };
  for (const [flag, least] of Object.entries(wholeNumbers)) assertWhole(flag, flags[flag as keyof typeof wholeNumbers], least);
  for (const flag of ["enough", "rate"] as const) assertNumber(flag, flags[flag]);
  assertTaught(flags.harness);
  assertBoth(flags);
  const signal = terminal().stopSignal();
  assertPackage(flags.python, trainer);
  const place = resolve(flags.out, `train-${newId("run").slice(3, 11)}`);
  await mkdir(place, { recursive: true });
  const policy = flags.policy === undefined ? join(place, "policy") : resolve(flags.policy);
  if (flags.policy === undefined) await cp(taughtModel, policy, { recursive: true });
  const tasks = taughtTasks.map((folder) => basename(folder));
  say(`alidade train: ${tasks.length} tasks × ${flags.samples} rollouts a step with ${flags.harness}; the run is left in ${place}`);
  say("  The policy may say anything: nothing forces it. In process sandboxes that runs as this user; --sandbox docker isolates it.\n");

  await using own =
    flags.engine === undefined ? await startPracticeEngine({ weights: policy, model: "taught", seed: Number(flags.seed), signal }) : null;
  const engine = flags.engine ?? own?.url ?? "";
  const { harness, sandbox, concurrency } = flags;
  await using service = await startService({ place, engine, harness, sandbox, concurrency });
  const steps: TrainedStep[] = [];
  const argv = [
    join(here, trainer.script),
    ...optionsOf({ ...flags, place, policy, engine, service: service.folder }),
    ...tasks.map((task) => `--task=${task}`),
  ];
  for await (const step of stepsOf(flags.python, argv, signal)) {
    if (steps.length === 0) print(headLine(tasks));
    steps.push(step);
    print(stepLine(step, tasks));
    await writeFile(join(place, "steps.jsonl"), steps.map((one) => `${JSON.stringify(one)}\n`).join(""));
    await writeFile(
      join(place, "curve.svg"),
      drawCurve(steps, flags["shuffle-rewards"] ? "Rewards shuffled within each group" : "Mean reward"),
    );
    // train.py ends by itself after it saved its last update. TRL must be stopped here.
    if (flags.trainer === "trl" && steps.length > 1 && steps.slice(-2).every(({ reward }) => reward >= Number(flags.enough))) break;
  }
  const [first, last] = [steps[0], steps.at(-1)];
  if (first && last) print(`\n  Mean reward ${percent(first.reward)} → ${percent(last.reward)} after ${last.step} updates.`);
  print(`  ${join(place, "curve.svg")}   the curve\n  ${join(place, "steps.jsonl")}   its numbers`);
  print(`  ${flags.trainer === "trl" ? trainedBy(place) : policy}   the trained weights`);
}

/** TRL's checkpoints, one of each update. */
const trainedBy = (place: string): string => join(place, "trained");

type Asked = {
  trainer: Trainer;
  place: string;
  policy: string;
  engine: string;
  service: string;
  samples: string;
  steps: string;
  enough: string;
  seed: string;
  rate: string;
  epochs: string;
  "max-version-lag": string;
  "shuffle-rewards": boolean;
};

/** The options of the trainer's script. */
function optionsOf({ trainer, place, policy, engine, service, ...asked }: Asked): string[] {
  const { samples, steps, enough, seed, rate, epochs } = asked;
  const both = { policy, engine, service, samples, seed, rate, epochs };
  const own = {
    pytorch: { ...both, steps, enough, "max-version-lag": asked["max-version-lag"] },
    // TRL counts each pass over a batch. One group is in memory at once.
    trl: { ...both, steps: Number(steps) * Number(epochs), beta: trlBeta, rows: samples, out: trainedBy(place) },
  };
  const argv = Object.entries(own[trainer]).map(([name, value]) => `--${name}=${value}`);
  return asked["shuffle-rewards"] ? [...argv, "--shuffle-rewards"] : argv;
}

function assertTrainer<Flags extends { trainer: string; "max-version-lag": string; "shuffle-rewards": boolean }>(
  flags: Flags,
): asserts flags is Flags & { trainer: Trainer } {
  const { trainer } = flags;
  if (!Object.hasOwn(trainers, trainer)) {
    const known = Object.keys(trainers).join(", ");
    throw new AlidadeError("config_invalid", `--trainer is "${trainer}": choose one of ${known}`, { param: "trainer" });
  }
  if (trainer === "pytorch") return;
  const refused = flags["shuffle-rewards"] ? "shuffle-rewards" : flags["max-version-lag"] !== "0" ? "max-version-lag" : null;
  if (refused !== null) {
    throw new AlidadeError("config_invalid", `--${refused} is only for --trainer pytorch: leave it out`, { param: refused });
  }
}

function perTrainer(flag: "rate" | "epochs"): string {
  return Object.entries(trainers)
    .map(([name, usual]) => `${name}: ${usual[flag]}`)
    .join(", ");
}

function assertPackage(python: string, { needs, called, installed }: (typeof trainers)[Trainer]): void {
  const found = spawnSync(python, ["-c", `import sys, ${needs}; assert sys.version_info >= (3, 9)`], { encoding: "utf8" });
  if (found.status === 0) return;
  throw new AlidadeError(
    "config_invalid",
    `--python ${python} has no ${called}: name one that has it, or run \`pip install ${installed}\``,
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

function assertTaught(harness: string): void {
  if (taughtHarnesses.some((name) => name === harness)) return;
  const known = taughtHarnesses.join(", ");
  throw new AlidadeError("config_invalid", `--harness is "${harness}": the model was taught to play with ${known}`, { param: "harness" });
}

function assertBoth({ engine, policy }: { engine?: string; policy?: string }): void {
  if ((engine === undefined) === (policy === undefined)) return;
  const [given, missing] = engine === undefined ? ["policy", "engine"] : ["engine", "policy"];
  throw new AlidadeError("config_invalid", `--${given} stands alone: give --${missing} too`, { param: missing });
}

type ServiceOptions = { place: string; engine: string; harness: string; sandbox: string; concurrency: string };

/** Starts the service in a process of its own, as a user does. */
async function startService({
  place,
  engine,
  harness,
  sandbox,
  concurrency,
}: ServiceOptions): Promise<AsyncDisposable & { folder: string }> {
  const config = {
    ...{ engine: { url: engine }, harness, sandbox, unsafe_host: sandbox === "process", out: place },
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
async function* stepsOf(python: string, argv: string[], signal: AbortSignal): AsyncGenerator<TrainedStep> {
  const env = {
    ...process.env,
    PYTHONPATH: [join(root, "clients/python"), join(root, "clients/python/examples"), process.env.PYTHONPATH]
      .filter(Boolean)
      .join(delimiter),
    PYTHONDONTWRITEBYTECODE: "1",
    TRL_EXPERIMENTAL_SILENCE: "1",
  };
  const child = spawn(python, argv, { env, stdio: ["ignore", "pipe", "pipe"] });
  const said = new BoundedOutput(saidKept, "end").follow(child.stderr);
  const ended = once(child, "close");
  const stop = () => child.kill("SIGKILL");
  signal.addEventListener("abort", stop, { once: true });
  let isWhole = false;
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      // TRL prints lines of its own.
      if (line.startsWith('{"')) yield TrainedStep.parse(readJson(line));
    }
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
    ...(["update", "sample", "train"] as const).map((phase) => [secondsOf(seconds[phase]), phase.length] as const),
  ] as const;
  return cells.map(([text, width]) => text.padStart(width)).join("  ");
}

function secondsOf(seconds: number | null): string {
  return seconds === null ? "–" : `${seconds.toFixed(1)} s`;
}

function percent(share: number | null): string {
  return share === null ? "–" : `${Math.round(100 * share)} %`;
}

await train().catch((error: unknown) => {
  terminal().exitCode = fail(error, false);
});
