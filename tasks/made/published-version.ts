/** A published version of a package, or a tarball of one on this disk. */
import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { integrityOf } from "../npm-source.ts";
import { readTarball } from "./read-tarball.ts";
import type { PackageRegistry } from "./registries.ts";
import { isWritable } from "./repository.ts";

export type PublishedVersion = {
  /** As it was asked for; of a tarball its name. */
  version: string;
  /** `sha512-…` of the tarball. */
  integrity: string;
  files: TreeFile[];
};

/** `word`: a version, or the path of a tarball. Throws `config_invalid` for what is neither. */
export async function publishedVersion(
  registry: PackageRegistry,
  name: string,
  word: string,
  signal: AbortSignal,
): Promise<PublishedVersion> {
  const isFile = await stat(word).then(
    (found) => found.isFile(),
    () => false,
  );
  if (!isFile && !registry.version.test(word))
    throw new AlidadeError(
      "config_invalid",
      `${JSON.stringify(word)} is no exact version and no tarball: give one as in 1.2.3 or ./${name}-1.2.3.tgz`,
    );
  const tarball = isFile ? await readFile(word) : await registry.tarball(name, word, signal);
  const all = await readTarball(tarball).catch((error: unknown) => {
    throw new AlidadeError("task_invalid", `${name} ${word} cannot be unpacked (${messageOf(error)}): a tar packed with gzip is needed`, {
      cause: error,
    });
  });
  const files = all.filter((file) => isWritable(file.path) && !registry.isPacking(file));
  return { version: isFile ? basename(word).replace(/\.(?:tgz|tar\.gz)$/, "") : word, integrity: integrityOf(tarball), files };
}
