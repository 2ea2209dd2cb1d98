/** Finds and ends processes on this machine by a mark in their environment, by group and by descent. */
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

export type Prey = {
  /** The start of a `NAME=value` that every one of them inherited. */
  mark: string;
  /** Process groups, by the pid that each was started with. */
  groups: number[];
};

type Process = { pid: number; parent: number; group: number; marked: boolean };

/** Ends all of them and what they start meanwhile. True when none is left. */
export async function killProcesses(prey: Prey): Promise<boolean> {
  // Rounds, because a process may fork between being found and being killed.
  for (let round = 0; round < 50; round += 1) {
    const found = select(await listProcesses(prey.mark), prey);
    if (found.length === 0) return true;
    for (const pid of found) signal(pid);
    await sleep(round < 5 ? 2 : 20);
  }
  return false;
}

function signal(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone already, or not ours to kill.
  }
}

function select(processes: Process[], { groups }: Prey): number[] {
  const chosen = new Set<number>();
  for (const { pid, group, marked } of processes) if (marked || groups.includes(group)) chosen.add(pid);
  // Descendants; a child is listed after its parent only by chance, so until nothing is added.
  for (let before = -1; before !== chosen.size; ) {
    before = chosen.size;
    for (const { pid, parent } of processes) if (chosen.has(parent)) chosen.add(pid);
  }
  chosen.delete(process.pid);
  return [...chosen];
}

function listProcesses(mark: string): Promise<Process[]> {
  return process.platform === "linux" ? listFromProc(mark) : listFromPs(mark);
}

async function listFromProc(mark: string): Promise<Process[]> {
  const names = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(names.map((name) => readProcess(Number(name), mark)));
  return found.filter((entry) => entry !== null);
}

async function readProcess(pid: number, mark: string): Promise<Process | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields[0] === "Z" || fields[0] === "X") return null;
    // Others' environments cannot be read, and are not ours.
    const environment = await readFile(`/proc/${pid}/environ`, "latin1").catch(() => "");
    return { pid, parent: Number(fields[1]), group: Number(fields[2]), marked: `\0${environment}`.includes(`\0${mark}`) };
  } catch {
    return null;
  }
}

function listFromPs(mark: string): Promise<Process[]> {
  return new Promise((resolve) => {
    const options = { maxBuffer: 64 * 1024 * 1024, env: { LC_ALL: "C", PATH: process.env.PATH } };
    execFile("ps", ["-axEwwo", "pid=,ppid=,pgid=,state=,command="], options, (_error, stdout) => {
      const processes: Process[] = [];
      for (const line of stdout.split("\n")) {
        const match = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\S+)\s(.*)$/.exec(line);
        if (match === null || match[4]?.startsWith("Z")) continue;
        const marked = ` ${match[5]}`.includes(` ${mark}`);
        processes.push({ pid: Number(match[1]), parent: Number(match[2]), group: Number(match[3]), marked });
      }
      resolve(processes);
    });
  });
}
