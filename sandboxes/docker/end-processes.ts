/** Ends the processes of one container, from inside: one command's, all of a user's, and those that kill back. */
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
 * Run as the keeper, so that the agent cannot signal it: ends all other processes of the keeper, then reports by its
 * exit code whether a process of user $1 lives. Only builtins.
 */
const killOwnAndLook = `
kill -9 -1 2>/dev/null
for status in /proc/[0-9]*/status; do
  state= user=
  while read -r key value rest; do
    case $key in State:) state=$value;; Uid:) user=$value;; esac
  done 2>/dev/null <"$status"
  [ "$user" = "$1" ] && [ "$state" != Z ] && [ "$state" != X ] && exit 1
done
exit 0`;

/** Ends what the command with this mark started, as its user. */
export async function killTree(own: RunOwn, user: string, mark: string): Promise<void> {
  const { exit_code } = await own(["sh", "-c", killMarked, "sh", `${treeVariable}=${mark}`], user).catch(() => ({ exit_code: null }));
  // No process could be started to look for the mark (the limit of pids is reached): all of the user's then.
  if (exit_code !== 0) await killAll(own, user);
}

async function killAll(own: RunOwn, user: string): Promise<void> {
  await own(["sh", "-c", "kill -9 -1"], user);
}

/**
 * The agent's processes first, then what we started as the keeper; the door's forwarder is another user's and stays.
 * False where a process of the agent's was seen after that: it kills faster than it is killed, or was only being started.
 */
export async function killAgentAndKeeper(own: RunOwn, agent: { id: number; user: string }, keeper: string): Promise<boolean> {
  await killAll(own, agent.user);
  const { exit_code } = await own(["sh", "-c", killOwnAndLook, "sh", String(agent.id)], keeper);
  return exit_code === 0;
}
