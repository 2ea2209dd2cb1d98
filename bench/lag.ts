/**
 * How many more rollouts an hour does a trainer get if rollouts may be up to two steps old?
 *
 *     node bench/lag.ts [--lags 0,2] [--steps 12] [--groups 4] [--samples 8] [--mean 4] [--sigma 0.8] [--train 4] [--json]
 *
 * The service is real, with its ledger, node and proxy. In a cluster, engine and trainer have machines of their own. Here both only
 * wait. A rollout is one call, whose answer takes a log-normal time. An update takes `--train` seconds. All lags get the same times.
 * There is a slot for each rollout of a step. Sandboxes are instant.
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { ServiceClient } from "../service/client/index.ts";
import { ScriptedEngine } from "../test/fakes/engines/scripted-engine.ts";
import { startCli } from "../test/fakes/processes/cli.ts";
import { markdownTable, numbersOf, surroundings } from "./measure.ts";
import { durationOf } from "./scale/durations.ts";

const { values } = parseArgs({
  options: {
    lags: { type: "string", default: "0,2" },
    steps: { type: "string", default: "12" },
    groups: { type: "string", default: "4" },
    samples: { type: "string", default: "8" },
    mean: { type: "string", default: "4" },
    sigma: { type: "string", default: "0.8" },
    train: { type: "string", default: "4" },
    json: { type: "boolean", default: false },
  },
});
const { steps, groups, samples, mean, sigma, train } = numbersOf(values, "steps", "groups", "samples", "mean", "sigma", "train");
const durations = { meanSeconds: mean, sigma, mostSeconds: 8 * mean };

type Figures = { lag: number; seconds: number; hourly: number; lags: number[]; busy: number };

/** One run of all steps. `busy`: the share of the slots' time that rollouts took. */
async function measure(lag: number): Promise<Figures> {
  const place = await mkdtemp(join(tmpdir(), "alidade-lag-"));
  await using scope = new AsyncDisposableStack();
  scope.defer(() => rm(place, { recursive: true, force: true }));
  await mkdir(join(place, "task"));
  await writeFile(join(place, "task", "task.yaml"), `task_id: t\ninstruction: i\ngrader: { kind: script, command: ["true"] }\n`);
  let asked = 0;
  let sampled = 0;
  const engine = scope.use(
    await ScriptedEngine.start(() => {
      asked += 1;
      const seconds = durationOf(`rollout ${asked}`, durations);
      sampled += seconds;
      return { text: "", before: sleep(1000 * seconds) };
    }),
  );
  const sandbox = join(import.meta.dirname, "../test/fakes/rollouts/instant-sandbox.ts");
  await writeFile(join(place, "run.yaml"), `engine: { url: "${engine.url}" }\nharness: { command: ["true"] }\nsandbox: ${sandbox}\n`);
  const slots = groups * samples;
  const running = scope.use(
    startCli(["service", "task", "-c", "run.yaml", "-p", "0", "--json", "--concurrency", `${slots}`], { cwd: place }),
  );
  await running.until(() => running.stdout.includes("\n"));
  const service = scope.use(ServiceClient.of(join(place, "runs/service")));
  const set = await service.set("lag", { samples, max_version_lag: lag, groups_per_step: groups });
  const keys = Array.from({ length: steps * groups }, (_, at) => ({ group_key: `g${at}`, task: "t" }));
  const lags: number[] = [];
  const began = performance.now();
  let after: string | null = null;
  for (let step = 0; step < steps; step += 1) {
    await service.weights({ version: `step-${step}`, step }, async () => undefined);
    // The service ignores groups that were submitted before.
    await set.submit(keys.slice(0, (step + lag + 1) * groups));
    let taken = 0;
    for await (const group of set.groups({ payload: "none", step, after, wait: 30 })) {
      after = group.cursor;
      for (const { state, reward } of group.results)
        if (state !== "completed" || reward !== 1) throw new Error(`a rollout failed: ${state}`);
      lags.push(...group.results.map(({ lag }) => lag ?? Number.NaN));
      taken += 1;
      if (taken === groups) break;
    }
    await set.keep(after ?? "", { step });
    await sleep(1000 * train);
  }
  const seconds = (performance.now() - began) / 1000;
  return { lag, seconds, hourly: (3600 * steps * slots) / seconds, lags, busy: sampled / (slots * seconds) };
}

const before = surroundings();
const found: Figures[] = [];
for (const lag of values.lags.split(",").map(Number)) found.push(await measure(lag));
const [base] = found;
const rows = found.map(({ lag, seconds, hourly, lags, busy }) => {
  const mean = lags.reduce((sum, one) => sum + one, 0) / lags.length;
  return [
    ...[`${lag}`, seconds.toFixed(0), hourly.toFixed(0), `${(hourly / (base?.hourly ?? Number.NaN)).toFixed(2)} ×`],
    ...[`${Math.round(100 * busy)} %`, mean.toFixed(2), `${Math.max(...lags)}`],
  ];
});
if (values.json) console.log(JSON.stringify({ before, after: surroundings(), options: values, found }));
else {
  console.log(JSON.stringify(before));
  console.log(
    `${steps} steps of ${groups} groups of ${samples}; a rollout takes ${mean} s in the mean (sigma ${sigma}), an update ${train} s\n`,
  );
  const columns = ["max_version_lag", "seconds", "rollouts an hour", "×", "slots in use", "mean lag", "worst lag"];
  console.log(markdownTable(columns, rows).join("\n"));
}
