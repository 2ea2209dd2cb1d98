/** What is fetched or built once and used by every run after it: package sources, dependencies, harness packs. */
import { chmod, glob, mkdir, mkdtemp, rename, rm, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";

/** `$ALIDADE_CACHE`, else `alidade` below `$XDG_CACHE_HOME` or `~/.cache`. */
export function cacheRoot(env: Record<string, string | undefined> = process.env): string {
  if (env.ALIDADE_CACHE) return resolve(env.ALIDADE_CACHE);
  return join(env.XDG_CACHE_HOME ? resolve(env.XDG_CACHE_HOME) : join(homedir(), ".cache"), "alidade");
}

/** Two callers of one process share one fill. */
const filling = new Map<string, Promise<string>>();

/**
 * The folder `name` of the cache; `fill` makes its content the first time. It is filled elsewhere and then renamed, so a
 * folder that exists is complete, also after a kill or with several processes at once.
 *
 *     const folder = await cached(`sources/${hash}`, (empty) => unpack(tarball, empty));
 */
export async function cached(name: string, fill: (folder: string) => Promise<void>): Promise<string> {
  const target = join(cacheRoot(), name);
  const running = filling.get(target);
  if (running) return running;
  const started = fillOnce(target, fill).finally(() => filling.delete(target));
  filling.set(target, started);
  return started;
}

async function fillOnce(target: string, fill: (folder: string) => Promise<void>): Promise<string> {
  if (await isFolder(target)) return target;
  await mkdir(dirname(target), { recursive: true });
  const draft = await mkdtemp(`${target}.draft-`);
  try {
    await fill(draft);
    // mkdtemp makes a folder for its owner alone, and inside a sandbox another user reads it.
    await chmod(draft, 0o755);
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    // Another process was first: what it made is as good as ours.
    if (!(await isFolder(target))) throw error;
  }
  return target;
}

/** Folders that are being filled, or were when their process was killed. */
export function draftsOfCache(): Promise<string[]> {
  const root = cacheRoot();
  return Array.fromAsync(glob("*/*.draft-??????", { cwd: root }), (name) => join(root, name));
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
