/** `alidade show <rollout>`: a session as a person wants to read it. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { AlidadeError, messageOf } from "../../../base/errors.ts";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import { privateFileMode, toStoreError } from "../../../proxy/store/index.ts";
import { renderDiff, renderHtml, renderText, type ShownWork, workDiff } from "../../../view/index.ts";
import { visibleText } from "../../../view/text/index.ts";
import { print, say } from "../command-line.ts";
import { terminal } from "../terminal.ts";
import { findRecord, findTrajectory } from "./find-trajectory.ts";
import { runFolderOf } from "./run-folder-of.ts";

export function show(program: Command): void {
  program
    .command("show")
    .description(
      "Prints a session turn by turn: what was said and called, how many tokens were sampled and may be trained, where it branches and why.",
    )
    .argument("[rollout]", "id of a rollout, session or trajectory, or <task>/<index>; its beginning is enough (default: the only one)")
    .option("-r, --run <folder>", "folder of the run (default: the newest below runs/)")
    .option("--html <file>", "write the same as one static page, with what the rollout changed; - prints it")
    .option("--diff", "print what the rollout changed, as a diff against its task's own files: in a sandbox that is made for it")
    .option("--json", "print the canonical trajectory; with --diff one JSON object with each path's diff")
    .option("--full", "do not shorten tool results and prompts")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade show slugify-accents/0\n  alidade show slugify-accents/0 --diff\n  alidade show ses1a2b… --run runs/run1abc --html session.html",
    )
    .action(async (name: string | undefined, flags: ShowFlags) => {
      const folder = await runFolderOf(flags.run);
      const trajectory = await findTrajectory(folder, name, (message) => say(`alidade: ${message}`));
      const record = flags.json && !flags.diff ? null : await findRecord(folder, trajectory);
      if (flags.diff) return showDiff(folder, record, flags.json === true);
      if (flags.html !== undefined) await writePage(flags.html, renderHtml(trajectory, record, await shownWork(folder, record)));
      else
        print(flags.json ? JSON.stringify(trajectory) : renderText(trajectory, { record, full: flags.full === true, color: hasColors() }));
    });
}

type ShowFlags = { run?: string; html?: string; diff?: boolean; json?: boolean; full?: boolean };

async function writePage(html: string, page: string): Promise<void> {
  if (html === "-") return print(page);
  await writeFile(html, page, { mode: privateFileMode }).catch((error: unknown) => {
    throw toStoreError(html, error);
  });
  say(`alidade: wrote ${html}`);
}

/** A page is also made where no sandbox of the task can be: then it says why the changes are not in it. */
async function shownWork(folder: string, record: RolloutRecord | null): Promise<ShownWork> {
  if (record === null || record.work === null) return null;
  const signal = terminal().stopSignal();
  try {
    const { openKeptRun } = await import("./kept-run.ts");
    const run = await openKeptRun(folder, { note: (text) => say(`  ${text}`), only: record.task_id }, signal);
    return await workDiff(run, join(folder, "blobs"), record, signal);
  } catch (error) {
    signal.throwIfAborted();
    return `The changes cannot be shown here: ${messageOf(error)}`;
  }
}

/** Through a pipe as it is, for other programs; on a terminal nothing of it moves the cursor. */
async function showDiff(folder: string, record: RolloutRecord | null, json: boolean): Promise<void> {
  const signal = terminal().stopSignal();
  if (record === null)
    throw new AlidadeError("not_found", "it is no rollout of a run, so it changed no files of a task", { param: "diff" });
  const { openKeptRun } = await import("./kept-run.ts");
  const run = await openKeptRun(folder, { note: (text) => say(`  ${text}`), only: record.task_id }, signal);
  const diffs = await workDiff(run, join(folder, "blobs"), record, signal);
  const { rollout_id, attempt, task_id } = record;
  if (json) print(JSON.stringify({ rollout_id, attempt, task_id, paths: diffs }));
  else print(renderDiff(diffs, terminal().stdout.isTTY ? painted : (line) => line).trimEnd());
}

function painted(line: string): string {
  const text = visibleText(line);
  const color = hasColors() ? { "+": 32, "-": 31, "@": 36, "#": 2 }[line.charAt(0)] : undefined;
  return color === undefined ? text : `\u001b[${color}m${text}\u001b[0m`;
}

/** Colours need a terminal that shows them; Node also reads NO_COLOR and TERM. */
function hasColors(): boolean {
  const { stdout } = terminal();
  return stdout.isTTY === true && stdout.hasColors?.() === true;
}
