/**
 * The pack of one's own command: files beside the run file, and what a requirements.txt and a package.json name, built
 * once and mounted read-only into every sandbox. Its folder is named by the hash of all of that.
 *
 *     bin/command     starts the command line that follows it
 *     files/          the files, as they lie below the run file's folder
 *     python/         on the PYTHONPATH
 *     node_modules/   found by programs in files/
 */
import { createHash } from "node:crypto";
import { chmod, copyFile, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join, normalize, relative, resolve } from "node:path";
import { AlidadeError, boundary } from "../base/errors.ts";
import { cached } from "../base/host/cache-folder.ts";
import type { OwnFiles } from "./harness.ts";
import { npmInstallFrom } from "./npm-install.ts";
import { containerPlatform, makeReadable, type Pack, type PackOptions } from "./pack.ts";
import { pipInstall } from "./pip-install.ts";

/** Raised when the same files are laid out in another way. */
const layout = 1;
/** A harness is a program; a folder with more was named by mistake, such as a home. */
const most = { files: 20_000, bytes: 512 * 1024 * 1024 };
/** Made by tools, for this machine. */
const leftOut: ReadonlySet<string> = new Set([".git", "node_modules", "__pycache__", ".venv"]);

const built = new WeakMap<OwnFiles, Promise<Pack>>();

/** Built once a process, so that all rollouts of a run have the same, also where a file is edited meanwhile. Throws `pack_failed`. */
export function ensureOwnPack(own: OwnFiles, options: PackOptions): Promise<Pack> {
  const known = built.get(own);
  if (known) return known;
  const pack = boundary("pack_failed", "The pack of your command could not be built", () => build(own, options));
  built.set(own, pack);
  pack.catch(() => built.delete(own));
  return pack;
}

type PackedFile = { path: string; from: string; bytes: number; isProgram: boolean };

async function build(own: OwnFiles, options: PackOptions): Promise<Pack> {
  const platform = options.platform ?? containerPlatform();
  const files = await filesOf(own);
  const hash = createHash("sha256")
    .update(JSON.stringify({ layout, platform, ...(await contentOf(own, files)) }))
    .digest("hex");
  const version = hash.slice(0, 12);
  const folder = await cached(`packs/command-${version}`, async (draft) => {
    options.progress?.(`building the pack of your command (${files.length} files)`);
    for (const { path, from, isProgram } of files) {
      const place = join(draft, "files", path);
      await mkdir(dirname(place), { recursive: true });
      await copyFile(from, place);
      await chmod(place, isProgram ? 0o755 : 0o644);
    }
    if (own.python !== null) {
      const requirements = resolve(own.folder, own.python);
      await pipInstall({ requirements, python_version: own.python_version, target: join(draft, "python"), platform }, options);
    }
    if (own.node !== null)
      await npmInstallFrom({ manifest: resolve(own.folder, own.node), folder: draft, platform, signal: options.signal });
    await mkdir(join(draft, "bin"));
    await writeFile(join(draft, "bin", "command"), launcher, { mode: 0o755 });
    await makeReadable(draft);
  });
  return { folder, hash, version, platform };
}

const launcher = `#!/bin/sh
pack=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd) || exit 127
PATH="\${PATH:-/usr/local/bin:/usr/bin:/bin}:/opt/alidade/node/bin"
PYTHONPATH="$pack/python\${PYTHONPATH:+:$PYTHONPATH}"
PYTHONDONTWRITEBYTECODE=1
export PATH PYTHONPATH PYTHONDONTWRITEBYTECODE
exec "$@"
`;

/** By their path below the folder. Links are followed: what they lead to is packed. */
async function filesOf({ folder, files }: OwnFiles): Promise<PackedFile[]> {
  const found = new Map<string, PackedFile>();
  let bytes = 0;
  const visit = async (from: string): Promise<void> => {
    const facts = await stat(from).catch((cause: unknown) => {
      throw new AlidadeError("config_invalid", `harness.files names ${from}, which is not there`, { param: "harness.files", cause });
    });
    if (facts.isDirectory()) {
      for (const name of (await readdir(from)).toSorted()) if (!leftOut.has(name)) await visit(join(from, name));
      return;
    }
    if (!facts.isFile()) return;
    bytes += facts.size;
    found.set(from, { path: relative(folder, from), from, bytes: facts.size, isProgram: (facts.mode & 0o100) !== 0 });
    if (found.size > most.files || bytes > most.bytes)
      throw new AlidadeError(
        "config_invalid",
        `harness.files holds more than ${most.files} files or ${most.bytes >> 20} MiB: name the program's own`,
        {
          param: "harness.files",
        },
      );
  };
  for (const file of files) await visit(resolve(folder, inside(file)));
  return [...found.values()];
}

/** A path below the run file's folder. Throws `config_invalid`. */
function inside(file: string): string {
  const path = normalize(file);
  if (!path.startsWith("..") && resolve("/", path) !== path) return path;
  throw new AlidadeError("config_invalid", `harness.files has "${file}": give paths below the run file's folder`, {
    param: "harness.files",
  });
}

/** What decides the pack's content. */
async function contentOf({ folder, python, python_version, node }: OwnFiles, files: PackedFile[]): Promise<object> {
  const textOf = async (name: string | null): Promise<string | null> => (name === null ? null : readFile(resolve(folder, name), "utf8"));
  const lock = node === null ? null : await readFile(join(dirname(resolve(folder, node)), "package-lock.json"), "utf8").catch(() => null);
  const listed = [];
  for (const { path, from, isProgram } of files)
    listed.push([
      path,
      isProgram,
      createHash("sha256")
        .update(await readFile(from))
        .digest("hex"),
    ]);
  return { listed, python: await textOf(python), python_version, node: await textOf(node), lock };
}
