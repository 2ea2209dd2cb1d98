/** `alidade reap`: removes what dead runs left behind. */
import type { Command } from "commander";
import { reapAll } from "../sandboxes/index.ts";
import { print, say, stopSignal } from "./command-line.ts";

export function reap(program: Command): void {
  program
    .command("reap")
    .summary("remove sandboxes that dead processes left behind")
    .description(
      "Removes containers, volumes and folders whose owner is gone or whose lease is over. Runs that are at work are left alone.",
    )
    .option("--all", "remove those of living runs as well")
    .option("--json", "print what was removed as one JSON object")
    .addHelpText("after", "\nExamples:\n  alidade reap\n  alidade reap --all --json")
    .action(async (flags: { all?: boolean; json?: boolean }) => {
      const signal = stopSignal();
      const removed = await reapAll({ all: flags.all === true }, signal);
      if (flags.json) print(JSON.stringify({ removed }));
      else say(removed.length === 0 ? "alidade: nothing was left behind" : removed.map((one) => `removed ${one}`).join("\n"));
    });
}
