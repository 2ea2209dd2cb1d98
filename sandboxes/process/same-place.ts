/**
 * One path for all process sandboxes. Harnesses print their working folder in their prompts, so random folder names would
 * give each rollout of a group another prompt, and trainers that identify a group by its prompt would find none. Each
 * command runs in its own mount namespace, with the sandbox's folder at one fixed path. That takes Linux, util-linux, and
 * root or unprivileged user namespaces; elsewhere a sandbox keeps its own path.
 */
import { execFile } from "node:child_process";
import { access, lstat, mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

export type SamePlace = {
  /** Where every sandbox's folder is seen. */
  path: string;
  /** The command, run in `cwd` (as it is seen), with the folder at that place. */
  wrap(folder: string, cwd: string, argv: string[]): string[];
};

/** The shell mounts, then becomes the command: its process, group and exit code are the command's. */
const mounts = 'mount --bind "$1" "$2" || exit 126; cd "$3" || exit 127; unset OLDPWD; shift 3;';
/** Mounting one folder takes a few milliseconds. */
const triedWithinMs = 10_000;

/** By user, for what one may another may not. */
const found = new Map<number | undefined, Promise<SamePlace | null>>();

/** null where the machine does not permit it; checked once. */
export async function samePlace(): Promise<SamePlace | null> {
  const user = process.geteuid?.();
  const known = found.get(user) ?? findPlace().catch(() => null);
  found.set(user, known);
  const place = await known;
  // What was not used for days is cleared away in temporary folders.
  if (place) await mkdir(place.path, { recursive: true, mode: 0o755 });
  return place;
}

async function findPlace(): Promise<SamePlace | null> {
  const unshare = await firstThere(["/usr/bin/unshare", "/bin/unshare"]);
  if (process.platform !== "linux" || unshare === null) return null;
  const path = join(await realpath(tmpdir()), "alidade-sandbox");
  await mkdir(path, { recursive: true, mode: 0o755 });
  // Another user's link would lead the mount elsewhere.
  if (!(await lstat(path)).isDirectory()) return null;
  const [user, group] = [process.geteuid?.() ?? 0, process.getegid?.() ?? 0];
  // Only root may mount, so another user is root in a namespace for as long as that takes, and itself again in the next.
  const asItself = `${unshare} --user --map-user=${user} --map-group=${group} --`;
  const ways = [
    { flags: ["--mount"], last: "" },
    { flags: ["--user", "--map-root-user", "--mount"], last: asItself },
  ];
  for (const { flags, last } of ways) {
    const script = `${mounts} exec ${last} "$@"`;
    const wrap: SamePlace["wrap"] = (folder, cwd, argv) => [
      ...[unshare, ...flags, "--", "/bin/sh", "-c", script, "sh", folder, path, cwd],
      ...argv,
    ];
    if (await works({ path, wrap })) return { path, wrap };
  }
  return null;
}

async function works({ path, wrap }: SamePlace): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-mount-"));
  try {
    await mkdir(join(folder, "inside"));
    const [command = "", ...args] = wrap(folder, join(path, "inside"), ["pwd", "-P"]);
    const { stdout } = await promisify(execFile)(command, args, { timeout: triedWithinMs });
    return stdout.trim() === join(path, "inside");
  } catch {
    return false;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function firstThere(paths: string[]): Promise<string | null> {
  for (const path of paths)
    if (
      await access(path).then(
        () => true,
        () => false,
      )
    )
      return path;
  return null;
}
