/**
 * Our folders in the system's temporary folder. Folders of dead processes are found by the owner that is written into each,
 * or by age where that is missing.
 */
import { lstat, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { readJson } from "../schema/read-json.ts";
import { draftsOfCache } from "./cache-folder.ts";
import { hostId } from "./owner.ts";
import { removeSandboxFolder } from "./processes/process-folder.ts";
import { type Belongings, type Reaped, type ReapOptions, reasonToRemove, removeInto } from "./reap.ts";

/** What a name begins with says what the folder is for. */
export const temporary = {
  sandbox: "alidade-sandbox-",
  /** The home of a recorded program. */
  home: "alidade-home-",
  /** A package that is being unpacked: needed for minutes, and without an owner. */
  package: "alidade-npm-",
  /** Works that are graded and not kept: for one task's gradings, and without an owner. */
  layers: "alidade-layers-",
  /** A blob on its way to a bucket: without an owner. */
  blob: "alidade-blob-",
  /** The copy of a repository that tasks are made from. */
  repository: "alidade-repository-",
} as const;

const ownerFile = "owner.json";
const Owner = z.strictObject({ run_id: z.string(), owner: z.string(), host: z.string(), lease: z.number() });

/** A folder without an owner is in use for minutes: until its owner is written, a package is unpacked, a cache is filled, a work is graded. */
const abandonedMs = 24 * 3600_000;

/** Makes a folder and writes its owner down. The path is the real one, because programs compare it with the path that they were given. */
export async function ownedFolder(prefix: string, belongings: Omit<Belongings, "host" | "made">): Promise<string> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), prefix));
  try {
    await writeFile(join(folder, ownerFile), JSON.stringify({ ...belongings, host: await hostId() }));
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
  return folder;
}

/** Removes folders of dead owners or with an expired lease, and the processes in them; also old folders without an owner. */
export async function reapTemporaryFolders(options: ReapOptions, signal: AbortSignal): Promise<Reaped> {
  const host = await hostId();
  const reaped: Reaped = { removed: [], failed: [] };
  for (const folder of await ourFolders()) {
    signal.throwIfAborted();
    const owner = await readOwner(folder);
    const reason = owner === null ? await ageReason(folder) : await reasonToRemove(owner, host, options);
    if (reason === null) continue;
    const what = `folder ${folder}${owner === null ? "" : ` of run ${owner.run_id}`} (${reason})`;
    await removeInto(reaped, what, options, () => removeSandboxFolder(folder, []));
  }
  return reaped;
}

async function ourFolders(): Promise<string[]> {
  const root = await realpath(tmpdir());
  const names = (await readdir(root)).filter((name) => Object.values(temporary).some((prefix) => name.startsWith(prefix)));
  const found = [...names.map((name) => join(root, name)), ...(await draftsOfCache())];
  const isOurs = await Promise.all(found.map(isOwnFolder));
  return found.filter((_, index) => isOurs[index]);
}

/** Not a link, and not another user's: all users share the temporary folder. */
async function isOwnFolder(path: string): Promise<boolean> {
  const found = await lstat(path).catch(() => null);
  return found?.isDirectory() === true && (process.getuid === undefined || found.uid === process.getuid());
}

/** null: there is none, or its process was killed while it wrote it. */
async function readOwner(folder: string): Promise<Belongings | null> {
  try {
    const owner = Owner.parse(readJson(await readFile(join(folder, ownerFile), "utf8")));
    return { ...owner, made: (await lstat(folder)).birthtimeMs };
  } catch {
    return null;
  }
}

async function ageReason(folder: string): Promise<string | null> {
  const found = await lstat(folder).catch(() => null);
  const age = found === null ? 0 : Date.now() - found.mtimeMs;
  return age < abandonedMs ? null : `it names no owner and is ${Math.floor(age / 3600_000)} hours old`;
}
