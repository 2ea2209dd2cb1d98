/**
 * `npm run demo`: small bug-fix tasks, four rollouts each, with a real harness. With Pi the embedded engine serves the taught
 * policy of `npm run train`, which samples freely. It was taught for Pi alone: with another harness the embedded engine has random
 * weights and is held to the demo's plays, which shows the mechanics and not skill. `--engine URL` puts any other engine in its place.
 */
import { randomInt } from "node:crypto";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { newId } from "../../base/schema/ids.ts";
import { fail, print, say } from "../../cli/commands/command-line.ts";
import { liveProgress } from "../../cli/commands/run/live-progress.ts";
import { rolloutTable } from "../../cli/commands/run/rollout-table.ts";
import { executeRun } from "../../cli/commands/run.ts";
import { terminal } from "../../cli/commands/terminal.ts";
import { loadConfig } from "../../cli/load-config.ts";
import { startPracticeEngine } from "../../practice/index.ts";
import { backendNames } from "../../sandboxes/registry.ts";
import { taughtBudgets, taughtModel, taughtTasks } from "../train/taught.ts";
import { loadPlays, type PlayedHarness, playsFor } from "./plays.ts";

const tasksFolder = fileURLToPath(new URL("./tasks/", import.meta.url));
const playedTasks = ["merge-ranges", "parse-duration"].map((name) => join(tasksFolder, name));

const usage = `npm run demo -- [options]

  --engine <url>     play against this engine instead of the embedded one (a vLLM: http://127.0.0.1:8000)
  --harness <name>   pi (default), codex, claude-code, gemini-cli, qwen-code or opencode; all but pi are held to plays
  --samples <n>      rollouts of each task (4)
  --sandbox <name>   ${backendNames.join(", ")} (default: auto)
  --unsafe-host      with --engine: allow the process sandbox, which isolates nothing
  --overcommit       run also where the sandboxes may take more memory or disk than the machine has
  --out <folder>     where the run is left (runs)`;

async function demo(): Promise<void> {
  const { values: flags } = parseArgs({
    options: {
      engine: { type: "string" },
      harness: { type: "string", default: "pi" },
      samples: { type: "string", default: "4" },
      sandbox: { type: "string" },
      "unsafe-host": { type: "boolean" },
      overcommit: { type: "boolean" },
      out: { type: "string" },
      help: { type: "boolean" },
    },
  });
  if (flags.help) return say(usage);
  const signal = terminal().stopSignal();
  const isEmbedded = flags.engine === undefined;
  const isTaught = isEmbedded && flags.harness === "pi";
  await using taught = isTaught ? await startPracticeEngine({ weights: taughtModel, model: "taught", seed: newSeed(), signal }) : null;
  const tasks = isTaught ? taughtTasks : playedTasks;
  const config = await loadConfig({
    env: {},
    overrides: {
      engine: { url: flags.engine ?? taught?.url ?? "practice" },
      harness: flags.harness,
      samples: Number(flags.samples),
      sandbox: flags.sandbox,
      // No stranger's code runs: what the embedded engine says is what it was taught, or what the demo's plays say.
      unsafe_host: flags["unsafe-host"] ?? isEmbedded,
      overcommit: flags.overcommit,
      out: flags.out,
      tasks,
      ...(isTaught && { budgets: taughtBudgets }),
    },
  });
  const runId = newId("run").slice(0, 11);
  const path = join(config.out, runId);
  const plays = isTaught ? new Map() : await playsOf(flags.harness as PlayedHarness);

  say(`alidade demo: ${tasks.length} tasks × ${config.samples} rollouts with ${flags.harness}`);
  if (isTaught)
    say(
      "  The engine is the embedded one, with a taught policy of 176 k parameters: real sampling, true logprobs, nothing forced.\n  It does some tasks right; `npm run train` teaches it the rest. For your policy: npm run demo -- --engine http://127.0.0.1:8000",
    );
  else if (isEmbedded)
    say(
      "  The engine is the embedded practice policy: random weights, real sampling, true logprobs. It is held to a list of\n  plays, some right and some wrong. For a real policy: npm run demo -- --engine http://127.0.0.1:8000",
    );
  const records = await executeRun({
    config,
    path,
    runId,
    signal,
    onProgress: liveProgress(),
    samplingOf: (task) => plays.get(task.task_id) ?? {},
  });
  print(`\n${rolloutTable(records)}`);
  if (isEmbedded && !isTaught)
    say(
      "\n  Trainable is 0 % because a grammar holds the practice policy to its plays. `export --allow-grammar` trains the tokens\n  that it was free to choose.",
    );
  const [first] = records;
  print(`
  ${path}/sessions/            every call as it happened, a log a session
  ${path}/trajectories.jsonl   token trees with masks, logprobs and rewards

  node bin/alidade.js show ${first?.task_id}/${first?.sample_index} --run ${path}            read one session
  node bin/alidade.js view ${path}            read the run in the browser
  node bin/alidade.js show ${first?.task_id}/${first?.sample_index} --run ${path} --html session.html
  node bin/alidade.js export --run ${path} --format flat${isEmbedded && !isTaught ? " --allow-grammar" : ""}  rows for a trainer`);
  if (records.some((record) => record.verdict?.reward == null)) terminal().exitCode = 1;
}

/** The demo shows other samples each time; the engine takes 32 bits. */
function newSeed(): number {
  return randomInt(2 ** 31);
}

async function playsOf(harness: PlayedHarness) {
  const read = playedTasks.map(async (folder) => {
    const script = await loadPlays(join(folder, "plays.json"));
    return [basename(folder), playsFor(harness, script, "mixed")] as const;
  });
  return new Map(await Promise.all(read));
}

await demo().catch((error: unknown) => {
  terminal().exitCode = fail(error, false);
});
