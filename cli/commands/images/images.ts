/** `alidade images prepare | list | prune`: what sandboxes are made from, before and after the runs. */
import { resolve } from "node:path";
import type { Command } from "commander";
import { AlidadeError } from "../../../base/errors.ts";
import type { EngineAddress } from "../../../base/schema/container-engine.ts";
import { newId } from "../../../base/schema/ids.ts";
import { environmentsOf } from "../../../graders/index.ts";
import { noteLeftOut } from "../../../rollouts/accepted/index.ts";
import type { ImageStore } from "../../../sandboxes/index.ts";
import { pickBackend } from "../../../sandboxes/index.ts";
import { loadTaskSets } from "../../../tasks/index.ts";
import { table } from "../../../view/text/index.ts";
import { print, say, toNumber } from "../command-line.ts";
import { dockerEngineOption, graderOption, loadPlugIns, sandboxWords, taskFormatOption } from "../flags/plug-in-flags.ts";
import { grantsOf, type ImageSourceFlags, imagesOption, repositoriesOption, taskEnvOption } from "../flags/task-grants.ts";
import { terminal } from "../terminal.ts";
import { nameOf, shortId, sizeText, tableOf } from "./image-table.ts";

type ImagesFlags = {
  keep?: number;
  budget?: string;
  dryRun?: boolean;
  sandbox: string;
  dockerEngine?: EngineAddress[];
  grader?: string[];
  taskFormat?: string[];
  taskEnv?: string[];
  json?: boolean;
} & ImageSourceFlags;

export function images(program: Command): void {
  program
    .command("images")
    .summary("prepare, list and prune the images that sandboxes are made from")
    .description(
      "prepare pulls and builds what tasks need, for a host that has no network later. list shows the images that Alidade made, pulled or used.\nprune removes those that it made or pulled, least recently used first, and never one that a container or a living run uses.\nThe exit code is 1 where an image could not be had or not be removed.",
    )
    .argument("<action>", "prepare, list or prune")
    .argument("[tasks...]", "of prepare: task files or folders")
    .option("--keep <number>", "of prune: images that may stay; 0 removes all that are not in use", toNumber)
    .option("--budget <size>", "of prune: what they may take on the disk together, such as 500MB or 20GB")
    .option("--dry-run", "of prune: only say what would be removed")
    .option("--sandbox <name>", sandboxWords, "auto")
    .addOption(dockerEngineOption())
    .addOption(graderOption())
    .addOption(taskFormatOption())
    .addOption(taskEnvOption())
    .addOption(imagesOption())
    .addOption(repositoriesOption())
    .option("--json", "print one JSON object")
    .addHelpText(
      "after",
      "\nExamples:\n  alidade images prepare my-tasks/\n  alidade images list\n  alidade images prune --budget 20GB\n  alidade images prune --keep 0 --dry-run",
    )
    .action(async (action: string, tasks: string[], flags: ImagesFlags) => {
      const run = actions.get(action);
      if (run === undefined)
        throw new AlidadeError("config_invalid", `"${action}" is no action: alidade images ${[...actions.keys()].join(" | ")}`, {
          param: "action",
        });
      if (action !== "prepare" && tasks.length > 0)
        throw new AlidadeError("config_invalid", `images ${action} takes no tasks: ${tasks.join(" ")}`, { param: "tasks" });
      await run(tasks, flags, terminal().stopSignal());
    });
}

type Action = (tasks: string[], flags: ImagesFlags, signal: AbortSignal) => Promise<void>;
const actions = new Map<string, Action>([
  ["prepare", prepare],
  ["list", list],
  ["prune", prune],
]);

async function storeOf({ sandbox, dockerEngine }: ImagesFlags, signal: AbortSignal): Promise<ImageStore> {
  const { backend } = await pickBackend(sandbox, signal, { docker_engines: dockerEngine, needs: { images: true } });
  if (backend.images) return backend.images;
  throw new AlidadeError(
    "config_invalid",
    `sandboxes in ${backend.title} keep no images that could be listed: choose another backend (--sandbox)`,
    {
      param: "sandbox",
    },
  );
}

async function prepare(paths: string[], flags: ImagesFlags, signal: AbortSignal): Promise<void> {
  if (paths.length === 0) throw new AlidadeError("config_invalid", "images prepare needs tasks: name files or folders", { param: "tasks" });
  const store = await storeOf(flags, signal);
  const plugIns = await loadPlugIns({ graders: flags.grader ?? [], task_formats: flags.taskFormat ?? [] });
  const progress = (text: string) => say(`  ${text}`);
  const places = paths.map((path) => (path.includes("#") ? path : resolve(path)));
  const noteTask = noteLeftOut(progress);
  const onLeftOut = (error: AlidadeError) => {
    noteTask(error);
    terminal().exitCode = 1;
  };
  const tasks = await loadTaskSets(places, {
    ...plugIns,
    ...grantsOf({ ...flags, task_env: flags.taskEnv ?? [] }),
    signal,
    progress,
    onLeftOut,
  });
  const wanted = environmentsOf(tasks, plugIns.graders);
  const prepared = await store.prepare(
    wanted.map(({ environment }) => environment),
    { signal, progress, user: { run_id: newId("run"), tasks: wanted.map(({ task_id }) => task_id) } },
  );
  const rows = wanted.map(({ task_id }, index) => {
    const found = prepared[index];
    return found?.error === null
      ? { task_id, image: found.image, image_digest: found.id, image_repo_digest: found.repo_digest, bytes: found.bytes, error: null }
      : { task_id, image: null, image_digest: null, image_repo_digest: null, bytes: null, error: found?.error.toJSON() ?? null };
  });
  if (flags.json) print(JSON.stringify({ images: rows }));
  else
    print(
      table(
        ["task", "image", "id", "size", "failed"],
        rows.map(({ task_id, image, image_digest, bytes, error }) => [
          task_id,
          image,
          image_digest && shortId(image_digest),
          bytes === null ? null : sizeText(bytes),
          error?.code ?? null,
        ]),
      ),
    );
  if (rows.some(({ error }) => error !== null)) terminal().exitCode = 1;
}

async function list(_tasks: string[], flags: ImagesFlags, signal: AbortSignal): Promise<void> {
  const found = await (await storeOf(flags, signal)).list(signal);
  print(flags.json ? JSON.stringify({ images: found }) : tableOf(found));
}

async function prune(_tasks: string[], flags: ImagesFlags, signal: AbortSignal): Promise<void> {
  const { keep = null, budget, dryRun = false } = flags;
  if (keep === null && budget === undefined)
    throw new AlidadeError(
      "config_invalid",
      "images prune needs --keep <number> or --budget <size>; --keep 0 removes every image that Alidade made or pulled and that is not in use",
      { param: "keep" },
    );
  if (keep !== null && !(Number.isInteger(keep) && keep >= 0))
    throw new AlidadeError("config_invalid", `--keep is ${keep}: give a whole number of 0 or more`, { param: "keep" });
  const bytes = budget === undefined ? null : bytesOf(budget);
  const pruned = await (await storeOf(flags, signal)).prune({ keep, budget: bytes, dry_run: dryRun }, signal);
  const { removed, failed, images_left, bytes_left } = pruned;
  if (flags.json) print(JSON.stringify({ ...pruned, dry_run: dryRun }));
  else {
    for (const image of removed) say(`${dryRun ? "would remove" : "removed"} ${nameOf(image)}`);
    for (const { image, message } of failed) say(`could not remove ${nameOf(image)}: ${message}`);
    say(`alidade: ${images_left} images ${dryRun ? "would be" : "are"} left, ${sizeText(bytes_left)} on the disk`);
    if (bytes !== null && bytes_left > bytes)
      say("alidade: that is above the budget: the images that are left are in use, or were not made or pulled by Alidade");
  }
  if (failed.length > 0) terminal().exitCode = 1;
}

const units = new Map([
  ["", 1],
  ["K", 1e3],
  ["M", 1e6],
  ["G", 1e9],
  ["T", 1e12],
]);

function bytesOf(text: string): number {
  const [, number = "", unit = ""] = /^(\d+(?:\.\d+)?)\s*([KMGT]?)B?$/i.exec(text.trim()) ?? [];
  const bytes = Number(number) * (units.get(unit.toUpperCase()) ?? Number.NaN);
  if (number !== "" && Number.isFinite(bytes)) return bytes;
  throw new AlidadeError("config_invalid", `--budget is "${text}": give a size such as 500MB or 20GB`, { param: "budget" });
}
