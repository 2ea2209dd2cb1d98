/** `alidade export`: a run's trajectories in a trainer's form. */
import { createWriteStream } from "node:fs";
import type { Command } from "commander";
import { AlidadeError } from "../errors.ts";
import { exporters, exportTrajectories } from "../exporters/index.ts";
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
    .option("--json", "print the report as one JSON object on standard error's place when --out is given")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade export --format flat --out rows.jsonl\n  alidade export --run runs/run1abc --format chat > sft.jsonl",
    )
    .action(async (flags: { run?: string; format: string; out?: string; maxTokens?: number; allowGrammar?: boolean; json?: boolean }) => {
      const exporter = exporters.find((one) => one.name === flags.format);
      if (!exporter)
        throw new AlidadeError(
          "plugin_unknown",
          `there is no format "${flags.format}"; there are ${exporters.map((one) => one.name).join(", ")}`,
          { param: "format" },
        );
      const sink = flags.out === undefined ? process.stdout : createWriteStream(flags.out);
      const trajectories = trajectoriesOf(await runFolderOf(flags.run));
      const report = await exportTrajectories(exporter, trajectories, sink, {
        maxTokens: flags.maxTokens ?? null,
        allowGrammar: flags.allowGrammar === true,
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
