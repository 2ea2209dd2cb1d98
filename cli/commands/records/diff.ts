/** `alidade diff A B`: two sessions aligned token by token, and where they part. */
import type { Command } from "commander";
import { compareSessions, renderDiff } from "../../../view/diff/index.ts";
import { print, say } from "../command-line.ts";
import { terminal } from "../terminal.ts";
import { findTrajectory } from "./find-trajectory.ts";
import { runFolderOf } from "./run-folder-of.ts";

export function diff(program: Command): void {
  program
    .command("diff")
    .description(
      "Puts each call of session A beside the call of B at its place, and says where their prompts or samples part and why; then aligns\nthe longest conversation of each token by token. Ends with 1 where anything differs.",
    )
    .argument("<a>", "id of a rollout, session or trajectory, or <task>/<index>")
    .argument("<b>", "the other one")
    .option("-r, --run <folder>", "folder of the run (default: the newest below runs/)")
    .option("--other-run <folder>", "folder of the run of B (default: that of A)")
    .option("--json", "print one JSON object")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade diff fix-slug/0 fix-slug/1\n  alidade diff fix-slug/0 fix-slug/0 --run runs/run1abc --other-run runs/run2def",
    )
    .action(async (a: string, b: string, flags: { run?: string; otherRun?: string; json?: boolean }) => {
      const folder = await runFolderOf(flags.run);
      const other = flags.otherRun === undefined ? folder : await runFolderOf(flags.otherRun);
      const onDamage = (message: string): void => say(`alidade: ${message}`);
      const found = compareSessions(await findTrajectory(folder, a, onDamage), await findTrajectory(other, b, onDamage));
      print(flags.json ? JSON.stringify(found) : renderDiff(found));
      if (!found.same) terminal().exitCode = 1;
    });
}
