/**
 * The process that made a sandbox, so that another process can later check whether it still lives. A pid alone is not
 * enough, because pids are used again; the pid and the start time of the process are.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile, readlink } from "node:fs/promises";
import { hostname } from "node:os";

/** `pid:start`: the start in clock ticks since boot on Linux, in seconds since 1970 on macOS. */
export async function currentOwner(): Promise<string> {
  return `${process.pid}:${(await startOf(process.pid)) ?? "unknown"}`;
}

/** False only when the process is certainly gone; in doubt it counts as alive. */
export async function isOwnerAlive(owner: string): Promise<boolean> {
  const match = /^(\d+):(\w+)$/.exec(owner);
  if (match === null) return true;
  const start = await startOf(Number(match[1]));
  return start !== null && (start === match[2] || match[2] === "unknown" || start === "unknown");
}

/**
 * Names this machine, this boot and this pid namespace: only there do a pid and its start mean anything. Engines may be
 * shared by several hosts, and what others made is theirs to remove.
 */
export async function hostId(): Promise<string> {
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
  const namespace = await readlink("/proc/self/ns/pid").catch(() => "");
  return createHash("sha256").update(`${hostname()}\n${boot}\n${namespace}`).digest("hex").slice(0, 16);
}

/** null: there is no such process. */
async function startOf(pid: number): Promise<string | null> {
  if (process.platform === "linux") return linuxStart(pid);
  if (process.platform === "darwin") return macStart(pid);
  try {
    process.kill(pid, 0);
    return "unknown";
  } catch {
    return null;
  }
}

async function linuxStart(pid: number): Promise<string | null> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  if (stat === null) return null;
  // The command name is in brackets and may hold anything, brackets and spaces too.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A zombie is dead: it owns nothing any more.
  return fields[0] === "Z" || fields[0] === "X" ? null : (fields[19] ?? "unknown");
}

function macStart(pid: number): Promise<string | null> {
  return new Promise((resolve) => {
    execFile("ps", ["-o", "lstart=", "-p", String(pid)], { env: { LC_ALL: "C", TZ: "UTC" } }, (error, stdout) => {
      const started = Date.parse(`${stdout.trim()} UTC`);
      resolve(error !== null ? null : Number.isNaN(started) ? "unknown" : String(started / 1000));
    });
  });
}
