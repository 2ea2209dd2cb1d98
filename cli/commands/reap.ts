/** `alidade reap`: removes what dead runs left behind. */
import type { Command } from "commander";
import { reapAll } from "../../sandboxes/index.ts";
import { print, say } from "./command-line.ts";
import { terminal } from "./terminal.ts";

export function reap(program: Command): void {
  program
    .command("reap")
    .description(
      "Removes containers, volumes and folders of dead owners or with an expired lease. Active runs are left alone.\nThe exit code is 1 where something could not be removed.",
    )
    .option("--all", "remove those of living runs as well")
    .option("--json", "print what was removed, and what could not be, as one JSON object")
    .addHelpText("after", "\nExamples:\n  alidade reap\n  alidade reap --all --json")
    .action(async (flags: { all?: boolean; json?: boolean }) => {
      const signal = terminal().stopSignal();
      const { removed, failed } = await reapAll({ all: flags.all === true }, signal);
      if (flags.json) print(JSON.stringify({ removed, failed }));
      else {
        const lines = [...removed.map((one) => `removed ${one}`), ...failed.map((one) => `could not remove ${one}`)];
        say(lines.length === 0 ? "alidade: nothing was left behind" : lines.join("\n"));
      }
      if (failed.length > 0) terminal().exitCode = 1;
    });
}
