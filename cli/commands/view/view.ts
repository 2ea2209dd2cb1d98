/** `alidade view`: a run in the browser. */
import { join } from "node:path";
import type { Command } from "commander";
import { messageOf } from "../../../base/errors.ts";
import { newKey } from "../../../base/schema/ids.ts";
import { type RunReader, type ShownWork, workDiff } from "../../../view/index.ts";
import { openView } from "../../../view/server/index.ts";
import { print, say, toNumber } from "../command-line.ts";
import { openKeptRun } from "../records/kept-run.ts";
import { runFolderOf } from "../records/run-folder-of.ts";
import { terminal } from "../terminal.ts";

type ViewFlags = { port: number; tokenizer?: string; json?: boolean };

export function view(program: Command): void {
  program
    .command("view")
    .description("Opens a run to be read in the browser: why each rollout earned what it did, its tokens, its group, and the whole run.")
    .argument("[run]", "folder of the run (default: the newest below runs/)")
    .option("--port <number>", "port on loopback (default: a free one)", toNumber, 0)
    .option("--tokenizer <file>", "tokenizer.json of the model, for tokens whose text is not on record: those of prompts")
    .option("--json", "print the link as one JSON object")
    .addHelpText("after", "\nExamples:\n  alidade view\n  alidade view runs/run1abc --port 4040")
    .action(async (run: string | undefined, flags: ViewFlags) => {
      const signal = terminal().stopSignal();
      const folder = await runFolderOf(run);
      const key = newKey();
      const { port, tokenizer } = flags;
      await using opened = await openView({ folder, port, key, tokenizer, workOf });
      const url = `${opened.url}/?key=${key}`;
      print(flags.json ? JSON.stringify({ run: folder, url }) : url);
      say(`alidade: ${folder}, ${opened.reader.rollouts.length} rollouts; the link works on this machine until Ctrl-C`);
      if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    });
}

/** In a sandbox of the rollout's task; where none can be made here the page says why. */
async function workOf(reader: RunReader, id: string, signal: AbortSignal): Promise<ShownWork> {
  const record = await reader.record(reader.find(id).entry);
  if (record === null || record.work === null) return null;
  try {
    const run = await openKeptRun(reader.folder, { note: () => undefined, only: record.task_id }, signal);
    return await workDiff(run, join(reader.folder, "blobs"), record, signal);
  } catch (error) {
    signal.throwIfAborted();
    return `The changes cannot be shown here: ${messageOf(error)}`;
  }
}
