/** The rows of a Parquet file as JSON would have them. The packed pages are unpacked by Node's own zlib. */
import { open } from "node:fs/promises";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import type { AsyncBuffer, Compressors } from "hyparquet";
import { messageOf } from "../../base/errors.ts";
import { taskError } from "../task-error.ts";

/** A page that says it is larger is no page of a table of tasks. */
const largestPage = 512 * 1024 * 1024;
/** Rows of the largest set there is, and ten times as many bytes as its file has. */
const mostBytes = 4 * 1024 * 1024 * 1024;

type Unpack = (packed: Uint8Array, options: { maxOutputLength: number }) => Uint8Array;

function bounded(unpack: Unpack) {
  return (packed: Uint8Array, length: number): Uint8Array => {
    if (length > largestPage) throw new Error(`a page of ${length} bytes is larger than ${largestPage}`);
    return unpack(packed, { maxOutputLength: Math.max(length, 1) });
  };
}

/** Snappy, the usual one, is the reader's own. */
const compressors: Compressors = { GZIP: bounded(gunzipSync), BROTLI: bounded(brotliDecompressSync), ZSTD: bounded(zstdDecompressSync) };

/** Throws `task_invalid` for a file that is no Parquet, or is packed in a way that Node does not know. */
export async function readParquet(path: string): Promise<unknown[]> {
  const { parquetReadObjects } = await import("hyparquet");
  return withFile(path, async (file) => (await parquetReadObjects({ file, compressors })).map(asJson));
}

/** The names of its columns, by the end of the file alone. Throws as `readParquet` does. */
export async function parquetColumns(path: string): Promise<string[]> {
  const { parquetMetadataAsync, parquetSchema } = await import("hyparquet");
  return withFile(path, async (file) => parquetSchema(await parquetMetadataAsync(file)).children.map(({ element }) => element.name));
}

async function withFile<T>(path: string, read: (file: AsyncBuffer) => Promise<T>): Promise<T> {
  await using file = await open(path);
  const { size } = await file.stat();
  if (size > mostBytes) throw taskError(path, "the file", `has ${size} bytes: split it into files of at most ${mostBytes}`);
  const slice = async (start: number, end = size): Promise<ArrayBuffer> => {
    const from = start < 0 ? size + start : start;
    const bytes = new ArrayBuffer(Math.max(0, Math.min(end, size) - from));
    await file.read(new Uint8Array(bytes), 0, bytes.byteLength, from);
    return bytes;
  };
  try {
    return await read({ byteLength: size, slice });
  } catch (error) {
    throw taskError(path, "the file", `cannot be read as Parquet: ${messageOf(error)}`);
  }
}

function asJson(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (value instanceof Date) return value.toISOString();
  if (ArrayBuffer.isView(value)) return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  if (Array.isArray(value)) return value.map(asJson);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, asJson(child)]));
}
