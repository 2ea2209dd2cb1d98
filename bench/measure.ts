/** What every benchmark states: the machine, its load, the revision; and how numbers of many rounds become one. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, loadavg, platform, totalmem } from "node:os";

export type Surroundings = { machine: string; node: string; commit: string; load: number };

export function surroundings(): Surroundings {
  return {
    machine: `${cpus().length} cores (${cpus()[0]?.model.trim() || "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GiB, ${platform()}`,
    node: process.versions.node,
    commit: commit(),
    load: loadavg()[0]!,
  };
}

function commit(): string {
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: import.meta.dirname, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  try {
    const changed = git("status", "--porcelain", "--untracked-files=no").trim() === "" ? "" : " + uncommitted changes";
    return git("rev-parse", "--short", "HEAD").trim() + changed;
  } catch {
    return "unknown";
  }
}

/** The options of these names as numbers. */
export function numbersOf<Name extends string>(options: Readonly<Record<Name, string>>, ...names: Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, Number(options[name])])) as Record<Name, number>;
}

/** USER_HZ is 100 on every Linux that Node runs on. */
const ticksPerSecond = 100;

/** CPU seconds that a process has used so far, all threads, user and system; null where there is no /proc. */
export function cpuSeconds(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name may hold spaces and parentheses; fields are counted behind it, utime is the 14th and stime the 15th.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  } catch {
    return null;
  }
}

/** The same of a process and of the children that it had and waited for. */
export function cpuSecondsWithEnded(pid: number): number | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / ticksPerSecond;
  } catch {
    return null;
  }
}

/** The same of a process, the children that it has now, and all that it had. */
export function cpuSecondsWithChildren(pid: number): number | null {
  const own = cpuSecondsWithEnded(pid);
  if (own === null) return null;
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
    return children.reduce((sum, child) => sum + (cpuSeconds(Number(child)) ?? 0), own);
  } catch {
    return null;
  }
}

export type Spread = { median: number; min: number; max: number };

/** Null when any of them is unknown. */
export function spread(values: readonly (number | null)[]): Spread | null {
  const known = values.filter((value) => value !== null).toSorted((a, b) => a - b);
  if (known.length === 0 || known.length < values.length) return null;
  return { median: quantile(known, 0.5), min: known[0]!, max: known.at(-1)! };
}

/** `sorted` in ascending order, not empty. */
export function quantile(sorted: readonly number[], q: number): number {
  const at = (sorted.length - 1) * q;
  const below = sorted[Math.floor(at)]!;
  return below + (sorted[Math.ceil(at)]! - below) * (at - Math.floor(at));
}

/** Columns as wide as what is in them, so that a person reads it as it is. */
export function markdownTable(columns: string[], lines: string[][]): string[] {
  const widths = columns.map((column, at) => Math.max(column.length, ...lines.map((line) => line[at]!.length)));
  const render = (cells: string[]) => `| ${cells.map((cell, at) => cell.padEnd(widths[at]!)).join(" | ")} |`;
  return [render(columns), `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...lines.map(render)];
}

/** A median with its lowest and highest. */
export function told(spread: Spread | null): string {
  return spread === null ? "" : `${short(spread.median)} (${short(spread.min)}–${short(spread.max)})`;
}

function short(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : Math.abs(value) >= 10 ? value.toFixed(1) : value.toFixed(2);
}
