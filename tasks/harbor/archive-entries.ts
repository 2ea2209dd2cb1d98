/** What is in a tar or a zip, one entry after the other. */
import { createReadStream } from "node:fs";
import { buffer } from "node:stream/consumers";
import { crc32, createGunzip } from "node:zlib";
import { type Entry, openPromise } from "yauzl";
import { readTar } from "../../base/files/read-tar.ts";

export type ArchivedEntry = {
  name: string;
  /** `file`, `directory`, or another word for what is neither. */
  type: string;
  /** Bytes, as the archive says: its content has no others. */
  size: number;
  isExecutable: boolean;
  /** A file has it alone; read before the next entry is asked for. */
  content: () => Promise<Buffer>;
};

type ArchiveReader = (file: string) => AsyncGenerator<ArchivedEntry>;

const readers: [suffix: RegExp, read: ArchiveReader][] = [
  [/\.(?:tar\.gz|tgz)$/i, (file) => tarEntries(file, true)],
  [/\.tar$/i, (file) => tarEntries(file, false)],
  [/\.zip$/i, zipEntries],
];

/** By the end of its name; null: it is no archive. */
export function archiveReader(path: string): ArchiveReader | null {
  return readers.find(([suffix]) => suffix.test(path))?.[1] ?? null;
}

async function* tarEntries(file: string, isPacked: boolean): AsyncGenerator<ArchivedEntry> {
  for await (const { header, content } of readTar(createReadStream(file), isPacked ? createGunzip() : undefined)) {
    const { name, type, size = 0, mode = 0 } = header;
    yield { name, type: type ?? "file", size, isExecutable: isExecutable(mode), content: () => buffer(content) };
  }
}

/** Names and sizes are checked by the library, which does not check that the content is whole. */
async function* zipEntries(file: string): AsyncGenerator<ArchivedEntry> {
  const archive = await openPromise(file);
  for await (const entry of archive.eachEntry()) {
    const content = async () => {
      const bytes = await buffer(await archive.openReadStreamPromise(entry));
      if (crc32(bytes) !== entry.crc32) throw new Error(`${entry.fileName} is damaged`);
      return bytes;
    };
    const mode = unixMode(entry);
    yield { name: entry.fileName, type: zipType(entry, mode), size: entry.uncompressedSize, isExecutable: isExecutable(mode), content };
  }
}

const isExecutable = (mode: number): boolean => (mode & 0o111) !== 0;

/** Mode and kind of file stand in the upper half where a Unix made the archive (PKWARE's APPNOTE 4.4.2 and 4.4.15); else 0. */
function unixMode({ versionMadeBy, externalFileAttributes }: Entry): number {
  const madeByUnix = 3;
  return versionMadeBy >> 8 === madeByUnix ? externalFileAttributes >>> 16 : 0;
}

/** Kinds of `stat`'s mode; 0 where the archive says none. */
const kinds = new Map([
  [0, "file"],
  [0o100000, "file"],
  [0o040000, "directory"],
  [0o120000, "symlink"],
]);

function zipType({ fileName }: Entry, mode: number): string {
  return fileName.endsWith("/") ? "directory" : (kinds.get(mode & 0o170000) ?? "special file");
}
