/** Installs the packages of a published set once, with our service. Both are mounted into the containers that serve its tasks. */
import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AlidadeError, boundary } from "../../base/errors.ts";
import { cached, cacheRoot } from "../../base/host/cache-folder.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { serviceFiles } from "../../base/schema/environment/services.ts";
import { newId } from "../../base/schema/ids.ts";
import { Environment, Limits } from "../../base/schema/task.ts";
import { containerPlatform, makeReadable, pipInstall } from "../../harnesses/index.ts";
import { backendNames, pickBackend } from "../../sandboxes/index.ts";
import type { LoadOptions } from "../task-format.ts";

const requirements = "requirements.txt";
/** That of Alidade's base image. */
const pythonVersion = "3.11";
/** Where the service finds the packages, and its own modules first. */
export const pythonPath = `${serviceFiles}:${serviceFiles}/site`;

/** One of our services for published sets. */
export type SetSource = {
  /** Names its folder in the cache. */
  name: string;
  /** Folder of our files: `requirements.txt` with the pinned packages, and `list.py`, which lists tasks. */
  files: string;
  /** Image in which `list.py` runs; null: Alidade's base image. */
  image: string | null;
};

/** `title` is shown to users, `key` names the list in the cache, `args` are the arguments of `list.py`. */
export type ListOrder = { title: string; key: string; args: string[] };

export type InstalledSet = {
  /** Is mounted as the service's files. Named by the hash of its pins and of our files. */
  folder: string;
  /** What the set's own code says of the tasks: a JSON value a line. */
  rows: string;
};

/** Installs the packages, and has the set's own code list the tasks in a sandbox without a network. Throws `pack_failed`. */
export async function installedSet(source: SetSource, order: ListOrder, options: LoadOptions): Promise<InstalledSet> {
  const { signal = new AbortController().signal, progress = () => undefined } = options;
  const name = `${source.name}/${await contentKey(source.files)}`;
  const listed = `${name}-${order.key}`;
  if (options.static && !(await isThere(listed)))
    throw new AlidadeError("task_invalid", `the set ${order.title} is not installed yet: load it once without --static`, { param: "set" });
  const folder = await boundary("pack_failed", "The packages of the set could not be installed", () =>
    cached(name, async (draft) => {
      for (const path of await filesIn(source.files)) {
        await mkdir(dirname(join(draft, path)), { recursive: true });
        await copyFile(join(source.files, path), join(draft, path));
      }
      const python = { python_version: pythonVersion, target: join(draft, "site"), platform: containerPlatform(), pinned: true };
      await pipInstall({ requirements: join(source.files, requirements), ...python }, { signal, progress });
      await makeReadable(draft);
    }),
  );
  const list = await cached(listed, async (draft) => {
    progress(`listing the tasks of ${order.title} (once)`);
    await writeFile(join(draft, rowsFile), await listedRows(folder, source, order, { signal, progress }));
  });
  return { folder, rows: join(list, rowsFile) };
}

const rowsFile = "tasks.jsonl";

type Progress = { signal: AbortSignal; progress: (line: string) => void };

async function listedRows(
  folder: string,
  { image }: SetSource,
  { title, args }: ListOrder,
  { signal, progress }: Progress,
): Promise<string> {
  // Its first name takes the first backend that has what is needed.
  const [first = ""] = backendNames;
  const { backend } = await pickBackend(first, signal, { needs: { images: true } });
  await backend.prepare([Environment.parse(image === null ? {} : { image })], { signal, progress });
  const limits = Limits.parse({ memory_mb: 1024, output_bytes: mostRowBytes });
  const spec = { run_id: newId("run"), owner: await currentOwner(), image, workdir: "/work", limits };
  await using sandbox = await backend.create({ ...spec, mounts: { [serviceFiles]: folder }, env: {} }, signal);
  const { exit_code, stdout, stderr } = await sandbox.exec(["python3", "-s", `${serviceFiles}/list.py`, ...args], {
    env: { PYTHONPATH: pythonPath, PYTHONDONTWRITEBYTECODE: "1" },
    max_output_bytes: mostRowBytes,
    signal,
  });
  if (exit_code === 0) return stdout;
  throw new AlidadeError("pack_failed", `the tasks of ${title} could not be listed: ${stderr.slice(-2_000)}`);
}

/** The largest domain has some megabytes. */
const mostRowBytes = 64 * 1024 * 1024;

/** By our files and by the platform that the packages are for. */
async function contentKey(files: string): Promise<string> {
  const hash = createHash("sha256").update(containerPlatform());
  for (const path of await filesIn(files)) hash.update(`\0${path}\0`).update(await readFile(join(files, path)));
  return hash.digest("hex").slice(0, 32);
}

async function filesIn(folder: string): Promise<string[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = found.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1));
  return paths.filter((path) => !path.includes("__pycache__")).sort();
}

async function isThere(name: string): Promise<boolean> {
  return stat(join(cacheRoot(), name)).then(
    () => true,
    () => false,
  );
}
