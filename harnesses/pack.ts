/**
 * A harness pack: the harness's npm packages and a pinned Node, installed once on the host and mounted read-only into
 * every sandbox, so that nothing is installed per rollout and no image is built per harness. Its folder is named by the
 * hash of everything that decides its content.
 *
 *     bin/<harness>      starts it: /opt/alidade/pi/bin/pi -p "…"
 *     node/bin/node      its Node, and programs that it runs by name: last on the PATH of what it starts
 *     node_modules/      npm's, without what a headless run does not need
 *     pack.json          what is in it
 */
import { createHash } from "node:crypto";
import { chmod, copyFile, link, lstat, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { z } from "zod";
import { AlidadeError, boundary } from "../base/errors.ts";
import { cached, cacheRoot } from "../base/host/cache-folder.ts";
import { lockFile } from "../base/host/lock-file.ts";
import { readJson } from "../base/schema/read-json.ts";
import type { Harness, PackPlatform } from "./harness.ts";
import { packPlatforms } from "./harness.ts";
import { npmInstall } from "./npm-install.ts";

/** The Node of every Linux pack: the house's own (.node-version). */
const packNodeVersion = "24.21.0";

/** Raised when the same pins are laid out in another way, so that a new release never meets an old folder. */
const layout = 1;

/** `hash` names the pins that it was made of; it goes into the rollout's record. */
export type Pack = { folder: string; hash: string; version: string; platform: PackPlatform };

export type PackOptions = {
  signal: AbortSignal;
  /** Gets one line at a time, for people. */
  progress?: (line: string) => void;
  /** Default: Linux on this machine's CPU, for containers. The process sandbox wants `hostPlatform()`. */
  platform?: PackPlatform;
};

const PackFile = z.strictObject({
  name: z.string(),
  version: z.string(),
  hash: z.string(),
  platform: z.enum(packPlatforms),
  packages: z.record(z.string(), z.string()),
  node: z.string(),
  /** SHA-256 of npm's lock file: versions and digests of all that was installed, dependencies too. */
  lock_hash: z.string(),
});

/**
 * The harness's pack, installed when it is not there yet; one that is there is used without touching the network.
 * Throws `pack_failed` with the end of npm's output.
 *
 *     const pack = await ensurePack(pi, { signal, progress: console.error });
 *     spec.mounts["/opt/alidade/pi"] = pack.folder;
 */
export async function ensurePack(harness: Harness, options: PackOptions): Promise<Pack> {
  const pack = plannedPack(harness, options.platform ?? containerPlatform());
  if (await isComplete(pack.folder)) return pack;
  await boundary("pack_failed", `The pack of ${harness.title} could not be installed`, async () => {
    await using _lock = await packLock(`${pack.folder}.lock`, options);
    await cached(packName(pack, harness), (folder) => install(harness, pack, folder, options));
  });
  return pack;
}

/** Saves doubled work and no more: what is cached is right without it. */
async function packLock(path: string, { signal, progress }: PackOptions): Promise<AsyncDisposable> {
  await mkdir(dirname(path), { recursive: true });
  let reported = false;
  const onBusy = (holder: string): void => {
    if (!reported) progress?.(`waiting for ${holder}, which holds ${path}`);
    reported = true;
  };
  return lockFile(path, { signal, onBusy });
}

/** Whether the pack is installed, without installing it. */
export function hasPack(harness: Harness, platform: PackPlatform = containerPlatform()): Promise<boolean> {
  return isComplete(plannedPack(harness, platform).folder);
}

/** Containers run Linux on the host's CPU, on macOS too. */
export function containerPlatform(): PackPlatform {
  return knownPlatform(`linux-${process.arch}`);
}

/** For what runs on the host itself. */
export function hostPlatform(): PackPlatform {
  return knownPlatform(`${process.platform}-${process.arch}`);
}

function knownPlatform(name: string): PackPlatform {
  const platform = packPlatforms.find((candidate) => candidate === name);
  if (platform !== undefined) return platform;
  throw new AlidadeError("pack_failed", `There are no harness packs for ${name}; there are for ${packPlatforms.join(", ")}.`);
}

function plannedPack(harness: Harness, platform: PackPlatform): Pack {
  if (harness.program === undefined || harness.version === null) {
    throw new AlidadeError("internal", `The harness "${harness.name}" has no pack: nothing of it is installed.`);
  }
  const pins = {
    layout,
    platform,
    node: nodeOf(platform),
    packages: harness.packages,
    program: harness.program(platform),
    unneeded: harness.unneeded?.(platform) ?? [],
    // Left out by JSON where there is none.
    input: harness.input,
    runs: harness.runs?.(platform),
  };
  const hash = createHash("sha256").update(JSON.stringify(pins)).digest("hex");
  const pack = { folder: "", hash, version: harness.version, platform };
  return { ...pack, folder: join(cacheRoot(), packName(pack, harness)) };
}

function nodeOf(platform: PackPlatform): string {
  return runsOnHost(platform) ? `${process.versions.node} ${process.execPath}` : packNodeVersion;
}

/** Name and version are for people; the hash decides. */
function packName(pack: Pack, harness: Harness): string {
  return `packs/${harness.name}-${pack.version}-${pack.hash.slice(0, 16)}`;
}

/** A pack appears under its name only when it is whole, so the file's presence is enough. */
async function isComplete(folder: string): Promise<boolean> {
  try {
    PackFile.parse(readJson(await readFile(join(folder, "pack.json"), "utf8")));
    return true;
  } catch {
    return false;
  }
}

async function install(harness: Harness, pack: Pack, folder: string, options: PackOptions): Promise<void> {
  const started = performance.now();
  options.progress?.(`installing ${harness.title} ${pack.version} for ${pack.platform} (once; kept in ${dirname(pack.folder)})`);
  await removeDrafts(pack.folder, folder);
  await npmInstall({ folder, packages: harness.packages, platform: pack.platform, signal: options.signal });
  const lockHash = createHash("sha256")
    .update(await readFile(join(folder, "package-lock.json")))
    .digest("hex");
  await removeUnneeded(folder, harness.unneeded?.(pack.platform) ?? []);
  await placeNode(folder, pack.platform, options);
  await linkPrograms(folder, harness, pack.platform);
  await writeLauncher(folder, harness, pack.platform);
  await writePackFile(folder, harness, pack, lockHash);
  await makeReadable(folder);
  options.progress?.(`${harness.title} ${pack.version} is installed (${Math.round((performance.now() - started) / 1000)} s)`);
}

/** What installs left behind that were killed: we hold the lock, so every other draft of this pack is dead. */
async function removeDrafts(target: string, own: string): Promise<void> {
  const folder = dirname(target);
  const drafts = (await readdir(folder)).filter((name) => name.startsWith(`${basename(target)}.draft-`) && name !== basename(own));
  for (const draft of drafts) await rm(join(folder, draft), { recursive: true, force: true });
}

/** Type declarations and source maps are not opened at run time. */
const neverRead = /\.d\.[cm]?ts$|\.map$/;

async function removeUnneeded(folder: string, unneeded: readonly string[]): Promise<void> {
  for (const path of unneeded) await rm(join(folder, path), { recursive: true, force: true });
  for (const entry of await readdir(join(folder, "node_modules"), { recursive: true, withFileTypes: true })) {
    if (entry.isFile() && neverRead.test(entry.name)) await rm(join(entry.parentPath, entry.name));
  }
}

async function placeNode(folder: string, platform: PackPlatform, options: PackOptions): Promise<void> {
  const target = join(folder, "node", "bin", "node");
  await mkdir(dirname(target), { recursive: true });
  if (runsOnHost(platform)) return symlink(process.execPath, target);
  const source = join(await linuxNode(platform, options), "bin", "node");
  // A hard link costs nothing; across file systems there is none.
  await link(source, target).catch(() => copyFile(source, target));
}

/** Beside Node, which is on the PATH of what the harness starts. */
async function linkPrograms(folder: string, harness: Harness, platform: PackPlatform): Promise<void> {
  const programs = harness.runs?.(platform) ?? [];
  for (const program of programs) {
    await assertCame(folder, harness, program, platform);
    await symlink(join("..", "..", program), join(folder, "node", "bin", basename(program)));
  }
}

/** A pack for macOS is for the process sandbox of this very machine, so the Node that runs us serves it. */
function runsOnHost(platform: PackPlatform): boolean {
  return platform.startsWith("darwin-");
}

/**
 * The pinned Node binary alone, once for all packs. It is npm's and not a copy of the one that runs us, for that may be a
 * distribution's (linked to libraries that a container lacks) or another system's. Addressed by the package behind npm's
 * `node`, it needs no install script.
 */
function linuxNode(platform: PackPlatform, options: PackOptions): Promise<string> {
  const name = `node-${platform}`;
  return cached(`packs/node-${packNodeVersion}-${platform}`, async (folder) => {
    options.progress?.(`installing Node ${packNodeVersion} for ${platform}`);
    await npmInstall({ folder, packages: { [name]: packNodeVersion }, platform, signal: options.signal });
    await mkdir(join(folder, "bin"));
    await copyFile(join(folder, "node_modules", name, "bin", "node"), join(folder, "bin", "node"));
    await copyFile(join(folder, "node_modules", name, "LICENSE"), join(folder, "LICENSE"));
    await rm(join(folder, "node_modules"), { recursive: true });
    await makeReadable(folder);
  });
}

/**
 * A few lines of shell that find their own folder, so that a pack may be mounted anywhere. The image's own Node stays
 * first on the PATH, for the task's tests want that one; standard input is what the harness names, else empty.
 */
async function writeLauncher(folder: string, harness: Harness, platform: PackPlatform): Promise<void> {
  const program = harness.program?.(platform) ?? "";
  await assertCame(folder, harness, program, platform);
  const started = program.endsWith(".js") ? `"$pack/node/bin/node" "$pack/${program}"` : `"$pack/${program}"`;
  const lines = [
    "#!/bin/sh",
    `pack=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd) || exit 127`,
    `PATH="\${PATH:-/usr/local/bin:/usr/bin:/bin}:$pack/node/bin"`,
    "export PATH",
    ...(harness.input === undefined ? [] : [`[ ! -r "$HOME/${harness.input}" ] || exec ${started} "$@" <"$HOME/${harness.input}"`]),
    `exec ${started} "$@" </dev/null`,
  ];
  await mkdir(join(folder, "bin"), { recursive: true });
  await writeFile(join(folder, "bin", harness.name), `${lines.join("\n")}\n`, { mode: 0o755 });
}

async function assertCame(folder: string, { title }: Harness, program: string, platform: PackPlatform): Promise<void> {
  await lstat(join(folder, program)).catch((cause: unknown) => {
    throw new AlidadeError("pack_failed", `${title} came without ${program}; its npm package has nothing for ${platform}.`, { cause });
  });
}

async function writePackFile(folder: string, harness: Harness, pack: Pack, lockHash: string): Promise<void> {
  const file: z.infer<typeof PackFile> = {
    name: harness.name,
    version: pack.version,
    hash: pack.hash,
    platform: pack.platform,
    packages: { ...harness.packages },
    node: nodeOf(pack.platform),
    lock_hash: lockHash,
  };
  await writeFile(join(folder, "pack.json"), `${JSON.stringify(file, null, 2)}\n`);
}

/** Inside a sandbox another user reads it, so this user's umask must not apply. */
export async function makeReadable(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isSymbolicLink()) continue;
    const path = join(entry.parentPath, entry.name);
    const { mode } = await lstat(path);
    const wanted = mode | (entry.isDirectory() || (mode & 0o100) !== 0 ? 0o555 : 0o444);
    if (wanted !== mode) await chmod(path, wanted);
  }
}
