/** A record as a blob: its JSON, zstd-compressed, named by its hash, so that a damaged one is found when it is read. */
import { hash } from "node:crypto";
import { promisify } from "node:util";
import { zstdCompress, zstdDecompress } from "node:zlib";
import { AlidadeError } from "../errors.ts";
import type { Blobs } from "./blobs.ts";

const suffix = ".json.zst";
/** What a person can compare by eye. The whole hash stands in the ledger. */
const hashDigits = 16;

/** Where it lies, what its bytes hash to, and how many they are. */
export type PackedBlob = { key: string; sha256: string; bytes: number };

export async function putPacked(blobs: Blobs, name: string, record: unknown, signal?: AbortSignal): Promise<PackedBlob> {
  const packed = await promisify(zstdCompress)(JSON.stringify(record));
  const sha256 = hash("sha256", packed);
  const key = `${name}-${sha256.slice(0, hashDigits)}${suffix}`;
  await blobs.put(key, packed, signal);
  return { key, sha256, bytes: packed.length };
}

/** The record's JSON. Throws `store_error` where the blob is not there, or is another one than was put there. */
export async function getPacked(blobs: Blobs, { key, sha256 }: PackedBlob): Promise<string> {
  const packed = await blobs.get(key);
  if (packed === null) throw new AlidadeError("store_error", `${blobs.place} has no ${key}`);
  if (hash("sha256", packed) !== sha256) throw new AlidadeError("store_error", `the blob ${key} is damaged: its hash is another one`);
  return (await promisify(zstdDecompress)(packed)).toString("utf8");
}

/** The bytes are those that the key was made of. */
export function isPackedAs(key: string, bytes: Uint8Array): boolean {
  return key.endsWith(`-${hash("sha256", bytes).slice(0, hashDigits)}${suffix}`);
}
