/** `alidade fork <rollout>`: new rollouts that share its first turns, token for token. */
import type { Command } from "commander";
import { print } from "../command-line.ts";
import { addEngineFlags, type EngineFlags } from "../flags/engine-flags.ts";
import { endRun } from "../run/report-run.ts";
import { terminal } from "../terminal.ts";
import { makeReplays, type ReplayFlags } from "./make-replays.ts";
import { addReplayFlags, toTurn, wholeNumber } from "./replay-flags.ts";

type ForkFlags = ReplayFlags &
  EngineFlags & { at: number; samples: number; concurrency: number; edit?: string; model?: string; rendered?: boolean };

export function fork(program: Command): void {
  addReplayFlags(addEngineFlags(program.command("fork")))
    .description(
      "Replays the rollout's turns up to --at in fresh sandboxes, and samples from there on. The first new turn gets the very prompt ids of the\nrecorded one, so all forks and the rollout itself share their prefix token for token. Replayed turns are context: they are not trained, and\ncharge no budget of tokens. The forks are one group, in a run folder of their own.",
    )
    .argument("[rollout]", "id of a rollout or session, or <task>/<index> (default: the only one)")
    .requiredOption("--at <turn>", "the last turn that is replayed, as `alidade show` numbers them; 0: none", toTurn)
    .option("-n, --samples <number>", "forks", wholeNumber, 4)
    .option("--concurrency <number>", "forks at once", wholeNumber, 2)
    .option(
      "--edit <text>",
      'the answer in the place of turn --at: text, or JSON such as {"tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}]}',
    )
    .option("--model <name>", "another model goes on; its prompts are rendered anew")
    .option("--rendered", "let the engine render the prompt anew where it cannot take the recorded ids, and say so in the record")
    .option("--json", "print one JSON object with the run's folder and its rollouts")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade fork slugify-accents/0 --at 3 -n 4\n  alidade fork slugify-accents/0 --at 3 --edit 'Look at the tests first.'",
    )
    .action(async (name: string | undefined, flags: ForkFlags) => {
      const { engine, kind, apiKeyEnv, samples, concurrency, rendered = false, model = null, edit = null } = flags;
      const engines = { engine, ...(kind !== undefined && { kind }), ...(apiKeyEnv !== undefined && { apiKeyEnv }) };
      const sampled = { samples, atOnce: Math.min(samples, concurrency), rendered, model, edit, engine: engines };
      const made = await makeReplays(name, { verb: "fork", flags, wanted: { turns: [flags.at], sampled } }, terminal().stopSignal());
      if (flags.json) print(JSON.stringify({ run: made.path, rollouts: made.records }));
      else await endRun({ path: made.path, records: made.records, leftOut: [], stopped: null }, false);
    });
}
