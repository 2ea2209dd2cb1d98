/** The images of the recipes: one with what the tests need, and on it one a recipe with the tree before its change, at /testbed. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { hashTree } from "../../base/files/file-tree.ts";
import { hashOf } from "../../base/schema/ids.ts";
import { ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { writeTree } from "../../tasks/made/write-tree.ts";
import type { SweImage } from "./row.ts";

const run = promisify(execFile);

/** Its name ends in the hash of what it is made from. */
export async function toolsImage(signal: AbortSignal, progress: (line: string) => void): Promise<string> {
  const base = await ensureBaseImage({ signal, progress });
  const dockerfile = await readFile(join(import.meta.dirname, "Dockerfile"), "utf8");
  const image = `alidade/swe-tools:${hashOf([base, dockerfile]).slice(0, 12)}`;
  await built(image, dockerfile, [], ["--build-arg", `BASE=${base}`], signal, progress);
  return image;
}

/** The date makes the commit the same one on every machine. */
const commit = `cd /testbed && git init -q . && git add -A -f . \\
 && GIT_AUTHOR_DATE=2024-01-01T00:00:00Z GIT_COMMITTER_DATE=2024-01-01T00:00:00Z git -c user.name=swe -c user.email=swe@localhost commit -q -m base`;

export async function instanceImage(
  instance_id: string,
  tools: string,
  before: TreeFile[],
  signal: AbortSignal,
  progress: (line: string) => void,
): Promise<SweImage> {
  // Modules of `src` are found by our runner and by pytest alike.
  const dockerfile = `FROM ${tools}\nENV PYTHONPATH=/testbed/src:/testbed PYTHONDONTWRITEBYTECODE=1\nCOPY tree /testbed\nRUN ${commit}\nWORKDIR /testbed\n`;
  const image = `alidade/swe.${instance_id.replace("__", "_")}:${hashOf([dockerfile, hashTree(before)]).slice(0, 12)}`;
  await built(image, dockerfile, before, [], signal, progress);
  const { stdout } = await run("docker", ["run", "--rm", "--network", "none", image, "git", "rev-parse", "HEAD"], { signal });
  return { image, base_commit: stdout.trim() };
}

async function built(
  image: string,
  dockerfile: string,
  tree: TreeFile[],
  flags: string[],
  signal: AbortSignal,
  progress: (line: string) => void,
): Promise<void> {
  const isThere = await run("docker", ["image", "inspect", image], { signal }).then(
    () => true,
    () => false,
  );
  signal.throwIfAborted();
  if (isThere) return;
  progress(`building ${image}`);
  const folder = await mkdtemp(join(tmpdir(), "alidade-swe-"));
  try {
    await writeTree(join(folder, "tree"), tree);
    await writeFile(join(folder, "Dockerfile"), dockerfile);
    await run("docker", ["build", "-q", "-t", image, ...flags, folder], { signal, maxBuffer: 64 * 1024 * 1024 });
  } finally {
    await rm(folder, { recursive: true });
  }
}
