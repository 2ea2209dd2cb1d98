/**
 * The bytes of `index.json`: a line of the index without its rows, a line for each row, and the hash of these lines. The hash
 * says that this code wrote them, so they are taken as they are. A row is read and written at a time, because the text of
 * all rows takes more memory than the rows do. Values that many rows share stand in lines of their own, and rows hold
 * their numbers (shared-values.ts).
 */
import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { readJson } from "../../base/schema/read-json.ts";
import { type IndexFile, indexLayout, indexName } from "./index-file.ts";
import { namedValues, putBack, SharedValues } from "./shared-values.ts";

const rowKinds = ["trajectories", "records", "sessions"] as const;
type IndexRowKind = (typeof rowKinds)[number];
type IndexHead = Omit<IndexFile, IndexRowKind>;
type SharedLine = ["shared", unknown];
type IndexRow = { [Kind in IndexRowKind]: [kind: Kind, row: IndexFile[Kind][number]] }[IndexRowKind];

/** A SHA-256 in hex, and its line end. */
const hashBytes = 65;
const blockBytes = 1024 * 1024;

/** null where there is none, or it is not what `writeIndexLines` wrote. */
export async function readIndex(folder: string): Promise<IndexFile | null> {
  // One open file, for another process may replace it meanwhile.
  const file = await open(join(folder, indexName)).catch(() => null);
  if (file === null) return null;
  await using _open = file;
  const found = await file.stat();
  const end = found.size - hashBytes;
  if (!found.isFile() || end <= 0 || !(await isWhole(file, end))) return null;
  const input = file.createReadStream({ start: 0, end: end - 1, autoClose: false, highWaterMark: blockBytes });
  let index: IndexFile | null = null;
  const shared: unknown[] = [];
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    if (index !== null) addLine(index, readJson(line) as IndexRow | SharedLine, shared);
    else {
      index = { ...(readJson(line) as IndexHead), trajectories: [], records: [], sessions: [] };
      if (index.layout !== indexLayout) return null;
    }
  }
  return index;
}

async function isWhole(file: FileHandle, end: number): Promise<boolean> {
  const hash = createHash("sha256");
  for await (const block of file.createReadStream({ start: 0, end: end - 1, autoClose: false, highWaterMark: blockBytes }))
    hash.update(block as Buffer);
  const { buffer } = await file.read(Buffer.alloc(hashBytes), 0, hashBytes, end);
  return buffer.toString("latin1") === `${hash.digest("hex")}\n`;
}

function addLine(index: IndexFile, line: IndexRow | SharedLine, shared: unknown[]): void {
  const [kind, row] = line;
  // Freeze the value, because many rows share it.
  if (kind === "shared") shared.push(Object.freeze(row));
  else (index[kind] as (typeof row)[]).push(putBack(row, shared));
}

export async function writeIndexLines(file: FileHandle, index: IndexFile): Promise<void> {
  const hash = createHash("sha256");
  let block: string[] = [];
  let size = 0;
  const flush = async (): Promise<void> => {
    const text = block.join("");
    hash.update(text);
    await file.write(text);
    [block, size] = [[], 0];
  };
  for (const value of linesOf(index)) {
    const line = `${JSON.stringify(value)}\n`;
    block.push(line);
    size += line.length;
    if (size > blockBytes) await flush();
  }
  await flush();
  await file.write(`${hash.digest("hex")}\n`);
}

function* linesOf(index: IndexFile): Generator<unknown> {
  const { trajectories: _, records: __, sessions: ___, ...head } = index;
  yield head satisfies IndexHead;
  const shared = new SharedValues();
  for (const kind of rowKinds)
    for (const row of index[kind]) {
      const named = namedValues(row, shared);
      for (const value of shared.takeNew()) yield ["shared", value] satisfies SharedLine;
      yield [kind, named];
    }
}
