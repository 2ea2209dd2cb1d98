/** Which folders hold tasks of Terminal-Bench. Their `task.yaml` has the name of our own: what stands in it tells them apart. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { exists } from "../host-path.ts";
import { readText } from "../read-text.ts";

export const configName = "task.yaml";
export const scriptName = "run-tests.sh";

/** The folder itself, else those of its folders that are one. */
export async function terminalBenchFolders(folder: string): Promise<string[]> {
  if (await isTerminalBench(folder)) return [folder];
  const entries = await readdir(folder, { withFileTypes: true });
  const inside = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith(".")).map((entry) => join(folder, entry.name));
  const is = await Promise.all(inside.map(isTerminalBench));
  return inside.filter((_, index) => is[index]).sort();
}

/** A longer file is no task in either form. */
const mostBytes = 1024 * 1024;

/** Our own `task.yaml` has a `task_id`, and no need of the files that stand beside Terminal-Bench's. */
export async function isTerminalBench(folder: string): Promise<boolean> {
  const beside = [scriptName, "docker-compose.yaml", "solution.sh", "solution.yaml"];
  const [has, ...others] = await Promise.all([configName, ...beside].map((name) => exists(join(folder, name))));
  if (has !== true || !others.includes(true)) return false;
  const text = await readText(join(folder, configName), { mostBytes, followsLinks: true }).catch(() => "");
  return !/^(?:\{ ?)?["']?task_id["']?:/m.test(text);
}
