/** `alidade fidelity`: what a run's trajectories are worth to a trainer, and what would make them worth more. */

import { join } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { DiskStore } from "../../../proxy/store/index.ts";
import { selectionNamed, selections } from "../../../reconstruct/index.ts";
import { openIndex } from "../../../rollouts/records/index.ts";
import { FidelitySummarizer, readDrift, renderDrift, renderSummary } from "../../../view/fidelity/index.ts";
import { countedAttempts, type OnLeftOut } from "../../../view/index.ts";
import { print, say, toNats, toTemperature } from "../command-line.ts";
import { trajectoriesOf } from "../overview/trajectories-of.ts";
import { runFolderOf } from "./run-folder-of.ts";

type FidelityFlags = {
  run?: string;
  select: string;
  maxTokens?: number;
  temperature?: number;
  allowGrammar?: boolean;
  trainerLogprobs?: string;
  tolerance: number;
  json?: boolean;
};

export function fidelity(program: Command): void {
  program
    .command("fidelity")
    .description(
      "Sums up a run: where its sampled tokens went (trained, or why not), how many rows a trainer gets for them, and the causes of\nbranches, the most frequent first, each with an example and what to do about it.",
    )
    .option("-r, --run <folder>", "folder of the run (default: the newest below runs/)")
    .addOption(new Option("--select <name>", "as in `alidade export`").choices(selections.map((one) => one.name)).default("strict"))
    .option("--max-tokens <number>", "longest row, as in `alidade export`", wholeNumber)
    .option("--temperature <number>", "of the trainer, as in `alidade export`", toTemperature)
    .option("--allow-grammar", "count tokens that were sampled under a grammar as trained")
    .option(
      "--trainer-logprobs <file>",
      "JSONL {call_id, logprobs} that a trainer recomputed: how far they are off, and why (docs/drift.md)",
    )
    .option("--tolerance <nats>", "of them: largest difference that passes; bfloat16 needs about 0.05", toNats, 0.05)
    .option("--json", "print one JSON object")
    .addHelpText("after", "\nExamples:\n  alidade fidelity\n  alidade fidelity --run runs/run1abc --select tolerant --allow-grammar")
    .action(async (flags: FidelityFlags) => {
      const { select, maxTokens = null, temperature = null, allowGrammar = false } = flags;
      const summarizer = new FidelitySummarizer({ strategy: selectionNamed(select), maxTokens, temperature, allowGrammar });
      const isDefault = select === "strict" && maxTokens === null && temperature === null && !allowGrammar;
      const folder = await runFolderOf(flags.run);
      const onLeftOut = (message: string, rollouts: number): void => {
        say(`alidade: ${message}`);
        summarizer.leaveOut(rollouts);
      };
      const drift = flags.trainerLogprobs === undefined ? null : await readDrift(flags.trainerLogprobs, flags.tolerance);
      if (isDefault && drift === null) await addIndexed(summarizer, folder, onLeftOut);
      else
        for await (const trajectory of trajectoriesOf(folder, onLeftOut)) {
          summarizer.add(trajectory);
          drift?.add(trajectory);
        }
      const found = drift && { drift: drift.summary };
      if (flags.json) print(JSON.stringify({ ...summarizer.summary, ...found }));
      else print([renderSummary(summarizer.summary), ...(found ? [renderDrift(found.drift)] : [])].join("\n\n"));
    });
}

/** The run's index has what the default options ask for, so no tokens are read. */
async function addIndexed(summarizer: FidelitySummarizer, folder: string, onLeftOut: OnLeftOut): Promise<void> {
  const logs = new Set(await new DiskStore(join(folder, "sessions")).list());
  for (const figures of countedAttempts(folder, await openIndex(folder), logs, onLeftOut)) summarizer.addFigures(figures);
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError("Give a whole number of 1 or more.");
  return Number(text);
}
