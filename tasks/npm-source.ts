/**
 * Code from the npm registry, fetched once and kept in the cache: published versions as file trees, and installed
 * dependencies. Whatever the registry is, the content is what its pinned hash says. npm itself talks to the registry,
 * with the user's own configuration; no script of a package runs.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { AlidadeError, messageOf } from "../base/errors.ts";
import type { TreeFile } from "../base/files/file-tree.ts";
import { BoundedOutput } from "../base/host/bounded-output.ts";
import { cached } from "../base/host/cache-folder.ts";
import { temporary } from "../base/host/temporary-folder.ts";
import { readTarball } from "./made/read-tarball.ts";
import { taskError } from "./task-error.ts";
import type { LoadOptions } from "./task-format.ts";

/** A registry that has not answered by then will not. */
const npmSeconds = 300;

/** The tree of a published version, as a folder of the cache. `integrity` is the registry's `sha512-…` of the tarball. */
export function packageSource(name: string, version: string, integrity: string, options: LoadOptions): Promise<string> {
  const key = createHash("sha256").update(`${name}@${version} ${integrity}`).digest("hex").slice(0, 32);
  return cached(`sources/${key}`, async (folder) => {
    options.progress?.(`fetching ${name}@${version}`);
    const content = await packedVersion(name, version, options);
    const found = integrityOf(content);
    if (found !== integrity)
      throw taskError(`${name}@${version}`, "source.integrity", `the registry's tarball is ${found}, the task pins ${integrity}`);
    await unpack(content, folder);
  });
}

/** The tarball of a published version, from the user's own registry. Both are of a checked form, without a dash in front. */
export async function packedVersion(name: string, version: string, options: Pick<LoadOptions, "signal">): Promise<Buffer> {
  await using packed = await temporaryFolder();
  // The spec cannot be read as an option: package names do not begin with a dash.
  await npm(["pack", `${name}@${version}`, "--pack-destination", packed.path], packed.path, options);
  const tarball = (await readdir(packed.path)).find((entry) => entry.endsWith(".tgz"));
  if (!tarball) throw new AlidadeError("pack_failed", `npm packed nothing for ${name}@${version}`);
  return await readFile(join(packed.path, tarball));
}

/** As the registry prints it. */
export function integrityOf(tarball: Buffer): string {
  return `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
}

/** `node_modules` for a folder with package.json and package-lock.json, installed into the cache. */
export async function installedPackages(manifest: string, options: LoadOptions): Promise<string> {
  const files = await lockedPackages(manifest);
  const hash = createHash("sha256");
  for (const { content } of files) hash.update(createHash("sha256").update(content).digest());
  return cached(`dependencies/${hash.digest("hex").slice(0, 32)}`, async (folder) => {
    options.progress?.("installing the dependencies of the tests");
    for (const { path, content } of files) await writeFile(join(folder, path), content);
    await npm(["ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder, options);
  });
}

/** The two files that pin them. Throws `task_invalid` where one is missing. */
export function lockedPackages(manifest: string): Promise<TreeFile[]> {
  const read = async (path: string): Promise<TreeFile> => {
    const content = await readFile(join(manifest, path)).catch(() => {
      throw taskError(manifest, "source.dependencies", `${path} is missing: dependencies are pinned by both files`);
    });
    return { path, content, mode: 0o644 };
  };
  return Promise.all(["package.json", "package-lock.json"].map(read));
}

async function npm(args: string[], cwd: string, { signal }: Pick<LoadOptions, "signal">): Promise<void> {
  const limit = AbortSignal.timeout(npmSeconds * 1_000);
  const child = spawn("npm", [...args, "--loglevel=error"], {
    cwd,
    stdio: ["ignore", "ignore", "pipe"],
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
    // npm is a script on Windows, and scripts want a shell there; the arguments are names and versions of a checked form.
    shell: process.platform === "win32",
  });
  const { promise, resolve, reject } = Promise.withResolvers<number | null>();
  child.once("error", reject).once("close", resolve);
  const errors = new BoundedOutput(2_000, "end").follow(child.stderr);
  const code = await promise.catch((error: unknown) => {
    throw new AlidadeError(
      "pack_failed",
      `npm ${args.join(" ")} could not be run: ${messageOf(error)}. It is needed once, with a registry in reach; afterwards the cache is used.`,
      { cause: error },
    );
  });
  if (code !== 0) throw new AlidadeError("pack_failed", `npm ${args.join(" ")} ended with ${code}: ${errors.toString().trim()}`);
}

async function unpack(tarball: Buffer, folder: string): Promise<void> {
  for (const { path, content, mode } of await readTarball(tarball)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content, { mode });
  }
}

async function temporaryFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), temporary.package));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
