/** Ends processes of one container from inside: those of one command, all of a user, and those that fight back. */
import { doorId, guardId } from "./container.ts";
import type { Finished } from "./exec.ts";

/** Runs a command of ours in the container, as `uid:gid`. */
export type RunOwn = (argv: string[], user: string) => Promise<Finished>;

/** Every process of one command has this variable, so the whole tree is found by it. Its value is a number, and never random. */
export const treeVariable = "ALIDADE_EXEC";

/**
 * Ends every process of the user that has the mark $1. If it cannot look for the mark, or processes keep coming, it ends all of
 * that user's processes: `kill -9 -1` is one system call, and no fork bomb is faster. Finding none proves something only if the
 * list of processes is the same before and after the search. Otherwise each process of a chain could start after the search
 * passed its place, and end before the next search. Uses only builtins and grep.
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
 * Prints user and group of each living process, except the container's first one and those of the users $1. Runs as the guard,
 * which the agent cannot signal. Uses only builtins.
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

/** Ends the guard's other commands, if everything is to end. */
const killOwn = "kill -9 -1 2>/dev/null";

/** Root becomes other users to start services and to fetch packages. Processes of more users than this end with the container. */
const mostUsers = 16;

/** Ends all processes with this mark: the user's own, and if the user is root, those of users that it became. */
export async function killTree(own: RunOwn, user: number, mark: string): Promise<void> {
  await killMarkedAs(own, of(user), mark);
  if (user !== 0) return;
  for (const other of (await livingUsers(own)) ?? []) if (other !== of(user)) await killMarkedAs(own, other, mark);
}

async function killMarkedAs(own: RunOwn, user: string, mark: string): Promise<void> {
  const argv = ["sh", "-c", killMarked, "sh", `${treeVariable}=${mark}`];
  const { exit_code } = await own(argv, user).catch(() => ({ exit_code: null }));
  // No process could start to look for the mark (the limit of pids is reached). So all of the user's processes end.
  if (exit_code !== 0) await killAllOf(own, user);
}

async function killAllOf(own: RunOwn, user: string): Promise<void> {
  await own(["sh", "-c", "kill -9 -1"], user);
}

/**
 * Ends the agent's processes first, then all others except the door's forwarder. Returns false if a process was seen after the
 * agent's had been killed: it may start others faster than they are killed, or it had only just started.
 */
export async function killAll(own: RunOwn, agent: number): Promise<boolean> {
  await killAllOf(own, of(agent));
  const users = await livingUsers(own, killOwn);
  for (const user of users ?? []) await killAllOf(own, user);
  return users?.length === 0;
}

/** Returns `uid:gid` of processes that are not ours. null: it cannot be seen. `first`: a command that the shell runs before. */
async function livingUsers(own: RunOwn, first = ""): Promise<string[] | null> {
  const kept = [guardId, doorId];
  const { stdout, exit_code } = await own(["sh", "-c", first + look, "sh", kept.join(" ")], of(guardId));
  if (exit_code !== 0) return null;
  // Root may have replaced the shell with one that prints anything.
  const users = stdout.split("\n").filter((line) => /^[0-9]{1,5}:[0-9]{1,5}$/.test(line) && !kept.includes(Number.parseInt(line, 10)));
  return [...new Set(users)].slice(0, mostUsers);
}

function of(user: number): string {
  return `${user}:${user}`;
}
