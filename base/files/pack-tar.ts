/**
 * A tarball as a stream of bytes. It is a generator and no set of streams: what fails while an entry is written fails the
 * reader of the tarball, once, and there is no other place where an error could come up.
 */
import { isAscii } from "node:buffer";

/** What stands in front of a file's bytes. */
export type TarHeader = {
  name: string;
  type: "file" | "directory" | "symlink" | "link";
  /** Permission bits, set-id and sticky bits too. */
  mode: number;
  owner: { uid: number; gid: number };
  mtime: Date;
  /** A name in words, which readers of tarballs show. ASCII, at most 31 characters. */
  uname?: string;
  /** Bytes of a file's content; 0 where left out. */
  size?: number;
  /** What a link leads to. */
  linkname?: string | null;
};

/** An entry of a tarball. `content` is read when it is the entry's turn. */
export type TarEntry = TarHeader & { content?: Buffer | AsyncIterable<Buffer> | null };

/** Pieces are gathered to this size: thousands of small files would else be thousands of reads. */
const chunkBytes = 64 * 1024;
const blockBytes = 512;

/** Throws what `entries` or a content throws, and for a content of another size than its header says. */
export async function* packTar(entries: AsyncIterable<TarEntry> | Iterable<TarEntry>): AsyncGenerator<Buffer, void, undefined> {
  let gathered: Buffer[] = [];
  let bytes = 0;
  const flush = (): Buffer => {
    const chunk = Buffer.concat(gathered);
    gathered = [];
    bytes = 0;
    return chunk;
  };
  for await (const piece of piecesOf(entries)) {
    gathered.push(piece);
    bytes += piece.length;
    if (bytes >= chunkBytes) yield flush();
  }
  yield flush();
}

async function* piecesOf(entries: AsyncIterable<TarEntry> | Iterable<TarEntry>): AsyncGenerator<Buffer, void, undefined> {
  for await (const entry of entries) {
    yield headerOf(entry);
    yield* contentOf(entry);
  }
  yield Buffer.alloc(2 * blockBytes);
}

async function* contentOf({ name, size = 0, content }: TarEntry): AsyncGenerator<Buffer, void, undefined> {
  let read = 0;
  for await (const piece of Buffer.isBuffer(content) ? [content] : (content ?? [])) {
    read += piece.length;
    // Each byte more would be read as the next header.
    if (read > size) break;
    yield piece;
  }
  if (read !== size) throw new Error(`the content of ${name} is not of the ${size} bytes that were announced`);
  if (size % blockBytes > 0) yield Buffer.alloc(blockBytes - (size % blockBytes));
}

/** Texts that the fields of a header cannot hold stand in an entry of their own before it (POSIX.1-2001, pax). */
function headerOf(header: TarHeader): Buffer {
  const { name } = header;
  const linkname = header.linkname ?? "";
  const place = placeOf(name);
  const records = [...(place === null ? [`path=${name}\n`] : []), ...(fits(linkname) ? [] : [`linkpath=${linkname}\n`])];
  const own = block(header, place ?? ["", paxName], fits(linkname) ? linkname : paxName);
  if (records.length === 0) return own;
  const pax = Buffer.concat(records.map(paxRecord));
  const padding = Buffer.alloc((blockBytes - (pax.length % blockBytes)) % blockBytes);
  return Buffer.concat([block({ ...header, type: "pax", size: pax.length }, ["", paxName], ""), pax, padding, own]);
}

/** Stands where a text is that does not fit. */
const paxName = "PaxHeader";
const nameBytes = 100;
const prefixBytes = 155;

/** Other characters than ASCII have no meaning there. */
function fits(text: string, most = nameBytes): boolean {
  return text.length <= most && isAscii(Buffer.from(text));
}

/** A name in its two fields, which are read with a slash between them; null where it does not fit. */
function placeOf(name: string): [prefix: string, rest: string] | null {
  if (fits(name)) return ["", name];
  const at = name.indexOf("/", name.length - nameBytes - 1);
  const [prefix, rest] = [name.slice(0, Math.max(0, at)), name.slice(at + 1)];
  return prefix !== "" && rest !== "" && fits(prefix, prefixBytes) && fits(rest) ? [prefix, rest] : null;
}

/** `<length> <text>`, where the length counts its own digits. */
function paxRecord(text: string): Buffer {
  const rest = Buffer.byteLength(text) + 1;
  let length = rest + String(rest).length;
  if (String(length).length !== String(rest).length) length = rest + String(length).length;
  return Buffer.from(`${length} ${text}`);
}

const typeFlags = { file: "0", link: "1", symlink: "2", directory: "5", pax: "x" } as const;

type HeaderBlock = Omit<TarHeader, "type"> & { type: keyof typeof typeFlags };

/** One header as POSIX.1-1988 has it (ustar). */
function block(
  { type, mode, owner, mtime, uname = "", size = 0 }: HeaderBlock,
  [prefix, name]: [string, string],
  linkname: string,
): Buffer {
  const header = Buffer.alloc(blockBytes);
  header.write(name, 0, nameBytes, "latin1");
  writeNumber(header, mode & 0o7777, 100, 8);
  writeNumber(header, owner.uid, 108, 8);
  writeNumber(header, owner.gid, 116, 8);
  writeNumber(header, type === "file" || type === "pax" ? size : 0, 124, 12);
  writeNumber(header, Math.max(0, Math.floor(mtime.getTime() / 1000)), 136, 12);
  header.write(typeFlags[type], 156, "latin1");
  header.write(linkname, 157, nameBytes, "latin1");
  header.write("ustar\x0000", 257, "latin1");
  header.write(uname, 265, 31, "latin1");
  writeNumber(header, 0, 329, 8);
  writeNumber(header, 0, 337, 8);
  header.write(prefix, 345, prefixBytes, "latin1");
  // The sum is over the header with spaces in the sum's own place.
  header.fill(" ", 148, 156);
  let sum = 0;
  for (const byte of header) sum += byte;
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return header;
}

/** Octal and a zero byte; a number that is too large for it in binary, with the highest bit set, as GNU and Go read it. */
function writeNumber(header: Buffer, value: number, at: number, length: number): void {
  const octal = value.toString(8);
  if (octal.length < length) header.write(octal.padStart(length - 1, "0"), at, "latin1");
  else {
    header.writeBigUInt64BE(BigInt(value), at + length - 8);
    header[at] = (header[at] ?? 0) | 0x80;
  }
}
