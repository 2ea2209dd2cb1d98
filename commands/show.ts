/** `alidade show <rollout>`: a session as a person wants to read it. */
import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { privateFileMode } from "../store/private.ts";
import { toStoreError } from "../store/store-error.ts";
import { print, say } from "./command-line.ts";
import { findRecord, findTrajectory } from "./records/find-trajectory.ts";
import { runFolderOf } from "./records/run-folder-of.ts";
import { renderHtml } from "./show/render-html.ts";
import { renderText } from "./show/render-text.ts";
import { terminal } from "./terminal.ts";

export function show(program: Command): void {
  program
    .command("show")
    .description(
      "Prints a session turn by turn: what was said and called, how many tokens were sampled and may be trained, where it branches and why.",
    )
    .argument("[rollout]", "id of a rollout, session or trajectory, or <task>/<index>; its beginning is enough (default: the only one)")
    .option("-r, --run <folder>", "folder of the run (default: the newest below runs/)")
    .option("--html <file>", "write the same as one static page; - prints it")
    .option("--json", "print the canonical trajectory")
    .option("--full", "do not shorten tool results and prompts")
    .addHelpText("after", "\nExamples:\n  alidade show slugify-accents/0\n  alidade show ses1a2b… --run runs/run1abc --html session.html")
    .action(async (name: string | undefined, flags: { run?: string; html?: string; json?: boolean; full?: boolean }) => {
      const folder = await runFolderOf(flags.run);
      const trajectory = await findTrajectory(folder, name, (message) => say(`alidade: ${message}`));
      const record = flags.json ? null : await findRecord(folder, trajectory);
      if (flags.html === "-") print(renderHtml(trajectory, record));
      else if (flags.html !== undefined) {
        const { html } = flags;
        await writeFile(html, renderHtml(trajectory, record), { mode: privateFileMode }).catch((error: unknown) => {
          throw toStoreError(html, error);
        });
        say(`alidade: wrote ${html}`);
      } else
        print(flags.json ? JSON.stringify(trajectory) : renderText(trajectory, { record, full: flags.full === true, color: hasColors() }));
    });
}

/** Colours need a terminal that shows them; Node also reads NO_COLOR and TERM. */
function hasColors(): boolean {
  const { stdout } = terminal();
  return stdout.isTTY === true && stdout.hasColors?.() === true;
}
