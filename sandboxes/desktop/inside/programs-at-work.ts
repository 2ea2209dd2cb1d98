/** Whether a program on the screen computes at this moment, or waits to be let to. On a busy machine it may draw nothing for seconds. */
import { readdir, readFile } from "node:fs/promises";

/** Runs, or is held by a disk. */
const states = ["R", "D"];

/** Only descendants of this process count. */
export async function areProgramsAtWork(): Promise<boolean> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  const stats = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, "utf8").catch(() => "")));
  return stats.some(isAtWork);
}

/** `stat`: see proc(5). The name in parentheses may have any characters. What was started from outside has no parent here. */
export function isAtWork(stat: string): boolean {
  const [state = "", parent = "0"] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return parent !== "0" && states.includes(state);
}
