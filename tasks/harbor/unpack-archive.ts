/** A tar or zip of task folders, unpacked once into the cache: regular files and folders, bounded. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { z } from "zod";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { insidePath } from "../../base/files/file-tree.ts";
import { cached } from "../../base/host/cache-folder.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { taskError } from "../task-error.ts";
import { archiveReader } from "./archive-entries.ts";

/** The largest public set has four thousand tasks of a few files each. */
const bounds = { files: 200_000, bytes: 4 * 1024 ** 3 };

export const isArchive = (path: string): boolean => archiveReader(path) !== null;

/** What stands in the archive in the place of a file: it is not unpacked, so its task lacks it. `type`: a link, a device … */
const NoFile = z.strictObject({ path: z.string(), type: z.string() });
export type NoFile = z.infer<typeof NoFile>;
const refusedName = ".alidade-refused.json";

/** The folder of what is in it, named by its content. */
export async function unpackArchive(file: string): Promise<{ folder: string; refused: NoFile[] }> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  const folder = await cached(`task-archives/${hash.digest("hex").slice(0, 32)}`, (made) => unpack(file, made));
  // Not there: an earlier version unpacked it, and there was none.
  const text = await readFile(join(folder, refusedName), "utf8").catch(() => "[]");
  return { folder, refused: z.array(NoFile).parse(readJson(text)) };
}

async function unpack(file: string, folder: string): Promise<void> {
  let [files, bytes] = [0, 0];
  const refused: NoFile[] = [];
  try {
    for await (const { name, type, size, isExecutable, content } of archiveReader(file)?.(file) ?? []) {
      const path = name.replace(/^(?:\.\/)+/, "").replace(/\/+$/, "");
      if (type === "directory") continue;
      if (insidePath(path) === null) throw taskError(file, name, "is no path in the archive: pack the folder with relative names");
      files += 1;
      bytes += size;
      if (files > bounds.files || bytes > bounds.bytes)
        throw taskError(file, "the archive", `holds more than ${bounds.files} files or ${bounds.bytes} bytes: make several of it`);
      if (type !== "file") {
        refused.push({ path, type });
        continue;
      }
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), await content(), { mode: isExecutable ? 0o755 : 0o644 });
    }
    await writeFile(join(folder, refusedName), JSON.stringify(refused));
  } catch (error) {
    if (error instanceof AlidadeError) throw error;
    throw taskError(file, "the archive", `cannot be unpacked (${messageOf(error)}): give a zip, a tar, or one packed with gzip`);
  }
}
