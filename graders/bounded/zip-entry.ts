/**
 * One file of a zip archive that an agent left. The archive's own list says where it is, and nothing is written to a disk. An
 * archive that readers could understand in two ways is refused.
 */
import { crc32, inflateRawSync } from "node:zlib";

const marks = { end: 0x06054b50, listed: 0x02014b50, local: 0x04034b50 };
const bytes = { end: 22, listed: 46, local: 30 };
const methods = { stored: 0, deflated: 8 };
/** A comment behind the archive may have this many bytes. */
const longestComment = 0xffff;
const mostEntries = 10_000;

type ListedEntry = { name: string; method: number; isEncrypted: boolean; crc: number; packed: number; size: number; at: number };

/** `most`: bytes that the file may have unpacked. Throws why it cannot be read. */
export function zipEntry(archive: Buffer, name: string, most: number): Buffer {
  const found = listedEntries(archive).filter((entry) => entry.name === name);
  const [entry] = found;
  if (entry === undefined) throw new Error(`the archive has no ${name}`);
  if (found.length > 1) throw new Error(`the archive has ${name} twice`);
  if (entry.isEncrypted) throw new Error(`${name} is encrypted`);
  if (entry.size > most) throw new Error(`${name} has more than ${most} bytes`);
  const content = unpack(packedBytes(archive, entry), entry, most);
  if (content.length !== entry.size || crc32(content) !== entry.crc) throw new Error(`${name} is damaged`);
  return content;
}

function listedEntries(archive: Buffer): ListedEntry[] {
  const end = endOf(archive);
  const count = archive.readUInt16LE(end + 10);
  if (count > mostEntries) throw new Error(`the archive has more than ${mostEntries} files`);
  const entries: ListedEntry[] = [];
  for (let at = archive.readUInt32LE(end + 16); entries.length < count; ) {
    if (at + bytes.listed > end || archive.readUInt32LE(at) !== marks.listed) throw new Error("the archive's list is damaged");
    const nameLength = archive.readUInt16LE(at + 28);
    const rest = archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
    entries.push({
      name: archive.toString("utf8", at + bytes.listed, at + bytes.listed + nameLength),
      isEncrypted: (archive.readUInt16LE(at + 8) & 1) === 1,
      method: archive.readUInt16LE(at + 10),
      crc: archive.readUInt32LE(at + 16),
      packed: archive.readUInt32LE(at + 20),
      size: archive.readUInt32LE(at + 24),
      at: archive.readUInt32LE(at + 42),
    });
    at += bytes.listed + nameLength + rest;
  }
  return entries;
}

/** The last place that looks like the end is the end, as for all readers. */
function endOf(archive: Buffer): number {
  const first = Math.max(0, archive.length - bytes.end - longestComment);
  for (let at = archive.length - bytes.end; at >= first; at--)
    if (archive.readUInt32LE(at) === marks.end && at + bytes.end + archive.readUInt16LE(at + 20) === archive.length) return at;
  throw new Error("it is no zip archive");
}

function packedBytes(archive: Buffer, { at, packed, name }: ListedEntry): Buffer {
  if (at + bytes.local > archive.length || archive.readUInt32LE(at) !== marks.local) throw new Error(`${name} is not where the list says`);
  const start = at + bytes.local + archive.readUInt16LE(at + 26) + archive.readUInt16LE(at + 28);
  if (start + packed > archive.length) throw new Error(`${name} ends behind the archive`);
  return archive.subarray(start, start + packed);
}

function unpack(packed: Buffer, { method, name }: ListedEntry, most: number): Buffer {
  if (method === methods.stored) return packed;
  if (method !== methods.deflated) throw new Error(`${name} is packed in an unknown way`);
  return inflateRawSync(packed, { maxOutputLength: most });
}
