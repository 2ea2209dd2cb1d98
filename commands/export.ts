/** `alidade export`: a run's trajectories in a trainer's form. */
import { createWriteStream } from "node:fs";
import type { Command } from "commander";
import { AlidadeError } from "../errors.ts";
import { exporterNamed, exporters, exportTrajectories } from "../exporters/index.ts";
import { toStoreError } from "../store/index.ts";
import { print, say } from "./command-line.ts";
import { runFolderOf, trajectoriesOf } from "./find-trajectory.ts";

export function exportCommand(program: Command): void {
  program
    .command("export")
    .summary("write a run's trajectories in a trainer's format")
    .description(
      `Writes one JSON object a line. Formats:\n${exporters.map((one) => `  ${one.name.padEnd(10)} ${one.title} (${one.objective})`).join("\n")}`,
    )
    .option("-r, --run <folder>", "folder of the run (default: the newest below runs/)")
    .option("-f, --format <name>", exporters.map((one) => one.name).join(", "), "flat")
    .option("-o, --out <file>", "file to write (default: standard output)")
    .option("--max-tokens <number>", "longest row; a longer one keeps its exact prefix up to a call boundary", Number)
    .option("--allow-grammar", "take tokens that were sampled under a grammar: their logprobs hold under its mask only")
    .option("--json", "with --out: print the report as one JSON object")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade export --format flat --out rows.jsonl\n  alidade export --run runs/run1abc --format chat > sft.jsonl",
    )
    .action(async (flags: { run?: string; format: string; out?: string; maxTokens?: number; allowGrammar?: boolean; json?: boolean }) => {
      const exporter = exporterNamed(flags.format);
      if (flags.maxTokens !== undefined && !(Number.isInteger(flags.maxTokens) && flags.maxTokens > 0))
        throw new AlidadeError("config_invalid", `--max-tokens is ${flags.maxTokens}: give a whole number of 1 or more`, {
          param: "max_tokens",
        });
      const trajectories = trajectoriesOf(await runFolderOf(flags.run));
      const sink = flags.out === undefined ? process.stdout : createWriteStream(flags.out);
      const report = await exportTrajectories(exporter, trajectories, sink, {
        maxTokens: flags.maxTokens ?? null,
        allowGrammar: flags.allowGrammar === true,
      }).catch((error: NodeJS.ErrnoException) => {
        // Of the system's own errors only the output can be the cause: reading names its file itself.
        throw error.syscall === undefined ? error : toStoreError(flags.out ?? "standard output", error);
      });
      if (flags.json && flags.out !== undefined) print(JSON.stringify({ out: flags.out, ...report }));
      else {
        const leftOut = Object.entries(report.left_out).map(([reason, count]) => `${count} ${reason}`);
        say(
          `alidade: ${report.rows} rows of ${report.trajectories} trajectories${leftOut.length > 0 ? `; left out: ${leftOut.join(", ")}` : ""}`,
        );
      }
    });
}
