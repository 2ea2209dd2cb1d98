/**
 * `npm run demo`: two small bug-fix tasks, four rollouts each, with the real Pi. The policy is the embedded practice
 * engine: a transformer with random weights, held to the demo's plays, so what it shows is the mechanics and not skill.
 * `--engine URL` puts any other engine in its place.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { newId } from "../../base/schema/ids.ts";
import { fail, print, say } from "../../cli/commands/command-line.ts";
import { liveProgress } from "../../cli/commands/run/live-progress.ts";
import { rolloutTable } from "../../cli/commands/run/rollout-table.ts";
import { executeRun } from "../../cli/commands/run.ts";
import { terminal } from "../../cli/commands/terminal.ts";
import { loadConfig } from "../../cli/load-config.ts";
import { backendNames } from "../../sandboxes/registry.ts";
import { loadPlays, type PlayedHarness, playsFor } from "./plays.ts";

const tasksFolder = fileURLToPath(new URL("./tasks/", import.meta.url));
const taskNames = ["merge-ranges", "parse-duration"];

const usage = `npm run demo -- [options]

  --engine <url>     play against this engine instead of the embedded one (a vLLM: http://127.0.0.1:8000)
  --harness <name>   pi (default), codex, claude-code, gemini-cli, qwen-code or opencode
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
  const config = await loadConfig({
    env: {},
    overrides: {
      engine: { url: flags.engine ?? "practice" },
      harness: flags.harness,
      samples: Number(flags.samples),
      sandbox: flags.sandbox,
      // What the embedded engine says is what the demo's plays say, so running that as this user is no stranger's code.
      unsafe_host: flags["unsafe-host"] ?? flags.engine === undefined,
      overcommit: flags.overcommit,
      out: flags.out,
      tasks: taskNames.map((name) => join(tasksFolder, name)),
    },
  });
  const runId = newId("run").slice(0, 11);
  const path = join(config.out, runId);
  const plays = new Map(
    await Promise.all(
      taskNames.map(
        async (name) =>
          [name, playsFor(flags.harness as PlayedHarness, await loadPlays(join(tasksFolder, name, "plays.json")), "mixed")] as const,
      ),
    ),
  );

  say(`alidade demo: ${taskNames.length} tasks × ${config.samples} rollouts with ${flags.harness}`);
  if (flags.engine === undefined)
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
  if (flags.engine === undefined)
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
  node bin/alidade.js export --run ${path} --format flat --allow-grammar  rows for a trainer`);
  if (records.some((record) => record.verdict?.reward == null)) terminal().exitCode = 1;
}

await demo().catch((error: unknown) => {
  terminal().exitCode = fail(error, false);
});
