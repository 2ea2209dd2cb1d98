/** `alidade init`: files to begin with, each commented, which work as they stand. */
import { constants } from "node:fs";
import { copyFile, lstat, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Command, Option } from "commander";
import { AlidadeError } from "../../../base/errors.ts";
import { Task } from "../../../base/schema/task.ts";
import { print } from "../command-line.ts";

const skeletons = fileURLToPath(new URL("./skeletons/", import.meta.url));
const languages = ["python", "node"] as const;
type Language = (typeof languages)[number];

/** What is begun: the skeletons of it, each with its place in the new folder, and what to do next. */
type Beginning = { parts: (language: Language) => [skeleton: string, place: string][]; next: (folder: string) => string };

const beginnings = {
  task: {
    parts: (language) => [[`task-${language}`, "."]],
    next: provesIt,
  },
  program: { parts: () => [["task-cases", "."]], next: provesIt },
  harness: {
    parts: () => [["harness", "."]],
    next: (folder) =>
      `\`alidade record --engine practice -- python3 ${join(folder, "agent.py")} "Say hello."\` records it; \`alidade init run\` shows how a run names it`,
  },
  run: {
    parts: (language) => [
      ["run", "."],
      ["harness", "."],
      [`task-${language}`, "tasks/clamp"],
    ],
    next: (folder) => `\`alidade run -c ${join(folder, "run.yaml")}\` runs it`,
  },
} satisfies Record<string, Beginning>;

function provesIt(folder: string): string {
  return `\`alidade check ${folder}\` proves it: its gold patch earns 1, and no change earns 0`;
}

type What = keyof typeof beginnings;

export function init(program: Command): void {
  program
    .command("init")
    .description(
      "Writes files to begin with: a task, one whose work is run as a program (`program`), a harness of one's own, or a run with both. They are commented, and work as they stand.",
    )
    .argument("<what>", Object.keys(beginnings).join(", "))
    .argument("<folder>", "where they go; no file is replaced")
    .addOption(new Option("--language <name>", "what the task's work is written in").choices(languages).default("python"))
    .option("--json", "print one JSON object with the files")
    .addHelpText("after", "\nExamples:\n  alidade init task my-task --language node\n  alidade init run my-run")
    .action(async (what: string, folder: string, flags: { language: Language; json?: boolean }) => {
      if (!Object.hasOwn(beginnings, what))
        throw new AlidadeError("config_invalid", `init knows no ${what}: give ${Object.keys(beginnings).join(", ")}`, { param: "what" });
      const beginning = beginnings[what as What];
      const target = resolve(folder);
      const copies = await copiesOf(beginning.parts(flags.language), target);
      // Before anything is written: half a skeleton beside one's own files would be worse than none.
      for (const { to } of copies)
        if (await isThere(to)) throw new AlidadeError("config_invalid", `${to} is there already: name another folder`, { param: "folder" });
      for (const { from, to } of copies) {
        await mkdir(dirname(to), { recursive: true });
        await copyFile(from, to, constants.COPYFILE_EXCL);
      }
      if (copies.some(({ to }) => to === join(target, "task.yaml"))) await nameTask(target);
      if (flags.json) print(JSON.stringify({ folder: target, files: copies.map(({ to }) => to) }));
      else print(`${copies.map(({ to }) => join(folder, relative(target, to))).join("\n")}\n\n${beginning.next(folder)}`);
    });
}

type Copy = { from: string; to: string };

async function copiesOf(parts: [skeleton: string, place: string][], target: string): Promise<Copy[]> {
  const copies = await Promise.all(
    parts.map(async ([skeleton, place]) => {
      const folder = join(skeletons, skeleton);
      const entries = await readdir(folder, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => relative(folder, join(parentPath, name)));
      return files.sort().map((path) => ({ from: join(folder, path), to: join(target, place, path) }));
    }),
  );
  return copies.flat();
}

/** A dangling link is there too. */
async function isThere(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (error: { code?: unknown }) => error.code !== "ENOENT",
  );
}

/** A task has its folder's name, where that can be one. */
async function nameTask(folder: string): Promise<void> {
  const file = join(folder, "task.yaml");
  const name = basename(folder);
  if (!Task.shape.task_id.safeParse(name).success) return;
  await writeFile(
    file,
    (await readFile(file, "utf8")).replace(/^task_id: .*$/m, () => `task_id: ${name}`),
  );
}
