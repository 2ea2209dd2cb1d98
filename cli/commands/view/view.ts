/** `alidade view`: a run in the browser. */
import { join } from "node:path";
import type { Command } from "commander";
import { AlidadeError, messageOf } from "../../../base/errors.ts";
import { newKey } from "../../../base/schema/ids.ts";
import { readTrainerLogprobs } from "../../../view/fidelity/index.ts";
import type { RunReader, ShownWork } from "../../../view/index.ts";
import { openView, type StaticOrder, writeStatic } from "../../../view/server/index.ts";
import { print, say, toNumber } from "../command-line.ts";
import { runFolderOf } from "../records/run-folder-of.ts";
import { terminal } from "../terminal.ts";
import type { OpenTextEngine } from "./open-text-engine.ts";

type ViewFlags = TextFlags & { trainerLogprobs?: string; port: number; with?: string; static?: string; only: string[]; json?: boolean };
type TextFlags = { tokenizer?: string; engine?: string; kind?: string; apiKeyEnv?: string };

export function view(program: Command): void {
  program
    .command("view")
    .description("Opens a run to be read in the browser: why each rollout earned what it did, its tokens, its group, and the whole run.")
    .argument("[run]", "folder of the run (default: the newest below runs/)")
    .option("--port <number>", "port on loopback (default: a free one)", toNumber, 0)
    .option("--with <run>", "folder of another run, to be held against this one by task")
    .option("--tokenizer <file>", "tokenizer.json of the model, for tokens whose text is not on record: those of prompts")
    .option("-e, --engine <url>", "server with the run's tokenizer, to be asked for such texts: vLLM, llama.cpp or `practice`")
    .option("-k, --kind <name>", "what server that is: see engine.kind in `alidade config --schema`")
    .option("--api-key-env <name>", "variable that holds that server's key")
    .option(
      "--trainer-logprobs <file>",
      "logprobs that a trainer or `audit` recomputed, as `fidelity` takes them: tokens are coloured by the difference",
    )
    .option("--static <folder>", "write the pages as files instead, which need no server: the run, its groups, and the rollouts of --only")
    .option("--only <filter>", "with --static: NAME=VALUE of the page's filters, such as reward=0; several times for several", collect, [])
    .option("--json", "print the link as one JSON object")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade view\n  alidade view runs/run1abc --port 4040\n  alidade view --engine http://127.0.0.1:8000\n  alidade view runs/run1abc --static shared --only reward=0 --only 'task=slug*'",
    )
    .action(async (run: string | undefined, flags: ViewFlags) => {
      const signal = terminal().stopSignal();
      const folder = await runFolderOf(run);
      await using engine = await textEngine(flags, signal);
      const texts = { tokenizer: flags.tokenizer, engine: engine?.source };
      const trainer = flags.trainerLogprobs === undefined ? undefined : (await readTrainerLogprobs(flags.trainerLogprobs)).calls;
      if (flags.static !== undefined) return await toFiles(folder, flags.static, { texts, trainer }, flags);
      const key = newKey();
      const { port } = flags;
      const note = (sentence: string): void => say(`alidade: ${sentence}`, "warn");
      const other = flags.with === undefined ? undefined : await runFolderOf(flags.with);
      await using opened = await openView({ folder, port, key, texts, trainer, other, workOf, signal, note });
      const url = `${opened.url}/?key=${key}`;
      print(flags.json ? JSON.stringify({ run: folder, url }) : url);
      say(`alidade: ${folder}, ${opened.reader.rollouts.length} rollouts; the link works on this machine until Ctrl-C`);
      if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    });
}

function collect(text: string, all: string[]): string[] {
  return [...all, text];
}

/** What opens engines is loaded when one is asked. */
async function textEngine({ engine: url, kind, apiKeyEnv }: TextFlags, signal: AbortSignal): Promise<OpenTextEngine | null> {
  const lone = Object.entries({ kind, "api-key-env": apiKeyEnv }).find(([, value]) => value !== undefined)?.[0];
  if (lone !== undefined && url === undefined)
    throw new AlidadeError("config_invalid", `--${lone} is of the server that --engine names: give --engine URL`, { param: lone });
  if (url === undefined) return null;
  const { openTextEngine } = await import("./open-text-engine.ts");
  return openTextEngine({ engine: [url], ...(kind !== undefined && { kind }), ...(apiKeyEnv !== undefined && { apiKeyEnv }) }, signal);
}

async function toFiles(
  folder: string,
  into: string,
  parts: Pick<StaticOrder, "texts" | "trainer">,
  { only, json }: ViewFlags,
): Promise<void> {
  const filters = new URLSearchParams(
    only.map((text): [string, string] => [text.split("=", 1)[0] ?? "", text.slice(text.indexOf("=") + 1)]),
  );
  const announce = (rollouts: number, pages: number) =>
    say(`alidade: writes ${rollouts} rollouts of ${folder} to ${into}: about ${pages} pages`);
  const written = await writeStatic({ folder, into, only: filters.toString(), ...parts, announce });
  const page = join(into, "index.html");
  print(
    json ? JSON.stringify({ run: folder, page, ...written }) : `${page}: ${written.pages} pages, ${(written.bytes / 1e6).toFixed(1)} MB`,
  );
}

/** In a sandbox of the rollout's task; where none can be made here the page says why. */
async function workOf(reader: RunReader, id: string, signal: AbortSignal): Promise<ShownWork> {
  const record = await reader.record(reader.find(id).entry);
  if (record === null || record.work === null) return null;
  try {
    // What makes sandboxes is loaded when it is needed: it takes more memory than a run of ten thousand rollouts.
    const [{ workDiff }, { openKeptRun }] = await Promise.all([import("../../../view/index.ts"), import("../records/kept-run.ts")]);
    const run = await openKeptRun(reader.folder, { note: () => undefined, only: record.task_id }, signal);
    return await workDiff(run, join(reader.folder, "blobs"), record, signal);
  } catch (error) {
    signal.throwIfAborted();
    return `The changes cannot be shown here: ${messageOf(error)}`;
  }
}
