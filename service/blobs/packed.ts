/** Records as a blob: each a line of JSON, zstd-compressed, named by its hash, so that a damaged one is found when it is read. */
import { createHash, hash } from "node:crypto";
import { promisify } from "node:util";
import { zstdCompress, zstdDecompress } from "node:zlib";
import { AlidadeError } from "../../base/errors.ts";
import type { Blobs } from "./blobs.ts";

const suffix = ".json.zst";
/** What a person can compare by eye. The whole hash stands in the ledger. */
const hashDigits = 16;

/** Where it lies, what its bytes hash to, and how many they are. */
export type PackedBlob = { key: string; sha256: string; bytes: number };

export function putPacked(blobs: Blobs, name: string, record: unknown, signal?: AbortSignal): Promise<PackedBlob> {
  return putAllPacked(blobs, name, [record], signal);
}

export async function putAllPacked(blobs: Blobs, name: string, records: readonly unknown[], signal?: AbortSignal): Promise<PackedBlob> {
  const packed = await promisify(zstdCompress)(records.map((record) => JSON.stringify(record)).join("\n"));
  const sha256 = hash("sha256", packed);
  const key = `${name}-${sha256.slice(0, hashDigits)}${suffix}`;
  await blobs.put(key, packed, signal);
  return { key, sha256, bytes: packed.length };
}

/** The first record's JSON. Throws as `getAllPacked`. */
export async function getPacked(blobs: Blobs, at: PackedBlob): Promise<string> {
  const [first = ""] = await getAllPacked(blobs, at);
  return first;
}

/** The JSON of each record. Throws `store_error` where the blob is not there, or is another one than was put there. */
export async function getAllPacked(blobs: Blobs, { key, sha256 }: PackedBlob): Promise<string[]> {
  const packed = await blobs.get(key);
  if (packed === null) throw new AlidadeError("store_error", `${blobs.place} has no ${key}`);
  if (hash("sha256", packed) !== sha256) throw new AlidadeError("store_error", `the blob ${key} is damaged: its hash is another one`);
  return (await promisify(zstdDecompress)(packed)).toString("utf8").split("\n");
}

/**
 * The pieces, as those of the blob that the key names. Throws `request_invalid` behind the last one where they are others: what
 * writes them down as they come keeps nothing then.
 */
export async function* piecesOf(key: string, pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const found = createHash("sha256");
  let size = 0;
  for await (const piece of pieces) {
    found.update(piece);
    size += piece.length;
    yield piece;
  }
  if (!key.endsWith(`-${found.digest("hex").slice(0, hashDigits)}${suffix}`))
    throw new AlidadeError("request_invalid", `${key} names other bytes than the ${size} that came`, { param: "name" });
}
