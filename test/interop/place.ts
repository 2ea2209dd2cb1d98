/**
 * Where what the tests install lives: outside the work tree, below a folder named after the hash of what goes into it,
 * so that new pins make a new folder and old ones are used again. The `install.sh` beside each computes the same names.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** A folder of the cache, by the shell's rule in every install.sh: $ALIDADE_CACHE, else ~/.cache/alidade. */
export function cachePlace(...names: string[]): string {
  return join(process.env.ALIDADE_CACHE || join(homedir(), ".cache", "alidade"), ...names);
}

/** The first 12 digits over the files of `folder`, in this order. */
export function hashOf(folder: string, names: string[]): string {
  const hash = createHash("sha256");
  for (const name of names) hash.update(readFileSync(join(folder, name)));
  return hash.digest("hex").slice(0, 12);
}

/** The one version that the install.sh of `folder` pins. */
export function pinnedVersion(folder: string): string {
  return /^version=(\S+)$/m.exec(readFileSync(join(folder, "install.sh"), "utf8"))?.[1] ?? "";
}

/** An install.sh that came to its end leaves the file `ready`. */
export function isReady(place: string): boolean {
  return existsSync(join(place, "ready"));
}
