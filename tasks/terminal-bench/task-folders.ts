/** Finds folders with tasks of Terminal-Bench. Our own form has a `task.yaml` too, so its contents tell the two apart. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { exists } from "../host-path.ts";
import { readText } from "../readers/read-text.ts";

export const configName = "task.yaml";
export const scriptName = "run-tests.sh";

/** Returns the folder if it is a task; otherwise its subfolders that are tasks. */
export async function terminalBenchFolders(folder: string): Promise<string[]> {
  if (await isTerminalBench(folder)) return [folder];
  const entries = await readdir(folder, { withFileTypes: true });
  const inside = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith(".")).map((entry) => join(folder, entry.name));
  const is = await Promise.all(inside.map(isTerminalBench));
  return inside.filter((_, index) => is[index]).sort();
}

/** Neither form allows a longer file. */
const mostBytes = 1024 * 1024;

/** Whether it is one: it has one of the files beside `task.yaml`, and no `task_id` in it, which our own form needs. */
export async function isTerminalBench(folder: string): Promise<boolean> {
  const beside = [scriptName, "docker-compose.yaml", "solution.sh", "solution.yaml"];
  const [has, ...others] = await Promise.all([configName, ...beside].map((name) => exists(join(folder, name))));
  if (has !== true || !others.includes(true)) return false;
  const text = await readText(join(folder, configName), { mostBytes, followsLinks: true }).catch(() => "");
  return !/^(?:\{ ?)?["']?task_id["']?:/m.test(text);
}
