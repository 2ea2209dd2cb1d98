/** Does what Terminal-Bench's oracle does: runs `solution.sh`, or types the commands of `solution.yaml`. */

import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { hashTree, type TreeFile } from "../../base/files/file-tree.ts";
import { cached } from "../../base/host/cache-folder.ts";
import type { GoldScript } from "../../base/schema/task.ts";
import { textOf } from "../harbor/read-config.ts";
import { writeTree } from "../made/write-tree.ts";
import { readYaml } from "../readers/read-yaml.ts";
import { parseTask } from "../task-error.ts";

const Typed = z.array(z.looseObject({ command: z.string(), append_enter: z.boolean().default(true) }));

export type BenchSolution = {
  gold_script?: GoldScript;
  /** Terminal-Bench types it into the agent's shell, and does not run it in a shell of its own. */
  isTyped: boolean;
};

export async function knownSolution(folder: string): Promise<BenchSolution> {
  if (await isFile(join(folder, "solution.sh")))
    return { gold_script: await goldScript(await textOf(join(folder, "solution.sh"))), isTyped: false };
  const typed = join(folder, "solution.yaml");
  if (!(await isFile(typed))) return { isTyped: false };
  const commands = parseTask(Typed, await readYaml(typed, { followsLinks: false }), typed);
  // Keys for a program in the terminal cannot become lines of a script.
  if (commands.some(({ append_enter }) => !append_enter)) return { isTyped: true };
  return { gold_script: await goldScript(commands.map(({ command }) => `${command}\n`).join("")), isTyped: true };
}

async function goldScript(text: string): Promise<GoldScript> {
  const files = [{ path: "solution.sh", content: Buffer.from(text), mode: 0o755 }];
  return { files: await keptFiles(files), at: "/oracle", command: ["bash", "/oracle/solution.sh"], env: {} };
}

export async function isFile(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null))?.isFile() === true;
}

/** Copies files to a folder of the cache, because a task's own folder holds other files beside them. The folder's name is their hash. */
export function keptFiles(files: TreeFile[]): Promise<string> {
  return cached(`terminal-bench/${hashTree(files).slice(0, 32)}`, (folder) => writeTree(folder, files));
}
