/** The trees of a recipe before and after its change, from Debian's archive or PyPI: kept in the cache by digest, and never run here. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { applyPatch } from "../../base/files/apply-patch.ts";
import { matchesAny, type TreeFile } from "../../base/files/file-tree.ts";
import { cached } from "../../base/host/cache-folder.ts";
import { readTarball } from "../../tasks/made/read-tarball.ts";
import { registries } from "../../tasks/made/registries.ts";
import type { PinnedFile, SweRecipe, SweSource } from "./recipes.ts";

export type SweTrees = { before: TreeFile[]; after: TreeFile[] };

/** A point release takes the older packaging out of the pool; the snapshot keeps it. */
const mirrors = ["http://deb.debian.org/debian", "http://snapshot.debian.org/archive/debian/20261101T000000Z"];

/** The change is limited to the recipe's sources and tests. */
export async function treesOf({ source, sources, tests }: SweRecipe, signal: AbortSignal): Promise<SweTrees> {
  const { before, after } = source.kind === "debian" ? await ofDebian(source, signal) : await ofPypi(source, signal);
  const isWanted = ({ path }: TreeFile) => matchesAny(path, [...sources, ...tests]);
  return { before, after: [...before.filter((file) => !isWanted(file)), ...after.filter(isWanted)] };
}

async function ofDebian(
  { pool, orig, debian, earlier, fix }: Extract<SweSource, { kind: "debian" }>,
  signal: AbortSignal,
): Promise<SweTrees> {
  const upstream = await readTarball(await readFile(await pooled(pool, orig, signal)));
  const packaging = await pooled(pool, debian, signal);
  // The folder of a cached file; its patches are unpacked beside it once.
  const patches = await cached(`swe-sources/patches-${debian[1]}`, async (folder) => {
    await promisify(execFile)("tar", ["-xJf", packaging, "-C", folder, "--strip-components=1", "debian/patches"], { signal });
  });
  const patchOf = (name: string) => readFile(join(patches, "patches", name), "utf8");
  let before = upstream;
  for (const name of earlier) before = applyPatch(before, await patchOf(name));
  return { before, after: applyPatch(before, await patchOf(fix)) };
}

async function ofPypi({ name, before, after }: Extract<SweSource, { kind: "pypi" }>, signal: AbortSignal): Promise<SweTrees> {
  const pypi = registries.find((registry) => registry.name === "pypi") as (typeof registries)[number];
  const treeOf = async ([version, sha256]: PinnedFile) => {
    const file = await kept(`${name}-${version}.tar.gz`, sha256, () => pypi.tarball(name, version, signal));
    return (await readTarball(await readFile(file))).filter((one) => !pypi.isPacking(one));
  };
  return { before: await treeOf(before), after: await treeOf(after) };
}

function pooled(pool: string, [name, sha256]: PinnedFile, signal: AbortSignal): Promise<string> {
  return kept(name, sha256, async () => {
    const tried: string[] = [];
    for (const mirror of mirrors) {
      const address = `${mirror}/pool/${pool}/${name}`;
      const answer = await fetch(address, { signal }).catch((error: unknown) => error as Error);
      if (answer instanceof Response && answer.ok) return Buffer.from(await answer.arrayBuffer());
      signal.throwIfAborted();
      tried.push(`${address}: ${answer instanceof Response ? answer.status : answer.message}`);
    }
    throw new Error(`${name} cannot be downloaded: ${tried.join("; ")}`);
  });
}

/** The path of a file of the cache, with exactly this content. */
async function kept(name: string, sha256: string, download: () => Promise<Buffer>): Promise<string> {
  const folder = await cached(`swe-sources/${sha256}`, async (empty) => {
    const content = await download();
    const found = createHash("sha256").update(content).digest("hex");
    if (found !== sha256) throw new Error(`${name} is sha256 ${found}, and the recipe pins ${sha256}`);
    await writeFile(join(empty, name), content);
  });
  return join(folder, name);
}
