/** Ends the processes of one container, from inside: one command's, all of a user's, and those that kill back. */
import { doorId, guardId } from "./container.ts";
import type { Finished } from "./exec.ts";

/** Runs a command of ours in the container, as `uid:gid`. */
export type RunOwn = (argv: string[], user: string) => Promise<Finished>;

/** Every process of one command carries this variable, by which the command's tree is found. A number, never random. */
export const treeVariable = "ALIDADE_EXEC";

/**
 * Ends every process of the user that carries the mark $1. Where the mark cannot be looked for, or processes keep
 * coming, it ends all of that user's: `kill -9 -1` is one system call that no fork bomb outruns. That none was found says
 * something only where no process came or went meanwhile: of a chain of them each may begin behind the look and end
 * before it. Only builtins and grep.
 */
const killMarked = `
command -v grep >/dev/null || kill -9 -1
round=0
while [ $round -lt 50 ]; do
  set -- "$1" /proc/[0-9]*; before=$*
  files=$(grep -lzxF -e "$1" /proc/[0-9]*/environ 2>/dev/null)
  set -- "$1" /proc/[0-9]*
  [ -z "$files" ] && [ "$before" = "$*" ] && exit 0
  for file in $files; do pid=\${file#/proc/}; kill -9 "\${pid%/environ}" 2>/dev/null; done
  round=$((round + 1))
done
kill -9 -1`;

/**
 * Run as the guard, which the agent cannot signal: prints user and group of each process that lives, but for the
 * container's own and those of the users $1. Only builtins.
 */
const look = `
for status in /proc/[0-9]*/status; do
  [ "$status" = /proc/1/status ] && continue
  state= user= group=
  while read -r key value rest; do
    case $key in State:) state=$value;; Uid:) user=$value;; Gid:) group=$value;; esac
  done 2>/dev/null <"$status"
  case " $1 " in *" $user "*) continue;; esac
  [ -n "$user" ] && [ "$state" != Z ] && [ "$state" != X ] && echo "$user:$group"
done
exit 0`;

/** The guard's other commands, where all is to end. */
const killOwn = "kill -9 -1 2>/dev/null";

/** Root becomes other users to start services and to fetch packages. What is left of more than these stops with the container. */
const mostUsers = 16;

/** Ends what a command of this user with this mark started: its own processes, and those of users that its root became. */
export async function killTree(own: RunOwn, user: number, mark: string): Promise<void> {
  await killMarkedAs(own, of(user), mark);
  if (user !== 0) return;
  for (const other of (await livingUsers(own)) ?? []) if (other !== of(user)) await killMarkedAs(own, other, mark);
}

async function killMarkedAs(own: RunOwn, user: string, mark: string): Promise<void> {
  const argv = ["sh", "-c", killMarked, "sh", `${treeVariable}=${mark}`];
  const { exit_code } = await own(argv, user).catch(() => ({ exit_code: null }));
  // No process could be started to look for the mark (the limit of pids is reached): all of the user's then.
  if (exit_code !== 0) await killAllOf(own, user);
}

async function killAllOf(own: RunOwn, user: string): Promise<void> {
  await own(["sh", "-c", "kill -9 -1"], user);
}

/**
 * The agent's processes first, then all others but the door's forwarder. False where one was seen after that: it starts others
 * faster than they are killed, or was only being started.
 */
export async function killAll(own: RunOwn, agent: number): Promise<boolean> {
  await killAllOf(own, of(agent));
  const users = await livingUsers(own, killOwn);
  for (const user of users ?? []) await killAllOf(own, user);
  return users?.length === 0;
}

/** As `uid:gid`: of processes that are neither ours nor the container's own. null: it cannot be seen. `first`: what the shell does before. */
async function livingUsers(own: RunOwn, first = ""): Promise<string[] | null> {
  const kept = [guardId, doorId];
  const { stdout, exit_code } = await own(["sh", "-c", first + look, "sh", kept.join(" ")], of(guardId));
  if (exit_code !== 0) return null;
  // Root may have replaced the shell, and print what it likes.
  const users = stdout.split("\n").filter((line) => /^[0-9]{1,5}:[0-9]{1,5}$/.test(line) && !kept.includes(Number.parseInt(line, 10)));
  return [...new Set(users)].slice(0, mostUsers);
}

function of(user: number): string {
  return `${user}:${user}`;
}
