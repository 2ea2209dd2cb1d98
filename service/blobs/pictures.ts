/**
 * Packs a rollout's pictures, and other bytes that it names by hash, into the blob of its trajectory. Each is a record after the records
 * of the attempt.
 */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import type { Media } from "../../base/media/media.ts";
import { hashesIn, namedBytes } from "../../base/media/named-bytes.ts";
import { readJson } from "../../base/schema/read-json.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { isLog } from "./session-log.ts";

/** Its bytes in base64, by their hash. */
export const PackedPicture = z.object({ sha256: z.string(), base64: z.string() });
export type PackedPicture = z.infer<typeof PackedPicture>;

/** What stands before them: the trajectory, and the record of its attempt. */
const recordsBefore = 2;

/** Returns all bytes that the trajectory names, each once. Throws if one of them cannot be read. */
export function packPictures(trajectory: Pick<Trajectory, "messages" | "blobs">, media: Pick<Media, "read"> | null): PackedPicture[] {
  if (media === null) return [];
  return namedBytes(trajectory).map((sha256) => ({ sha256, base64: media.read(sha256).toString("base64") }));
}

/** `lines`: the records of the blob, each as JSON. */
export function unpackPictures(lines: readonly string[]): PackedPicture[] {
  return lines.slice(recordsBefore).flatMap((line) => (isLog(line) ? [] : [PackedPicture.parse(readJson(line))]));
}

/** Returns only the bytes that these lines of an export name. */
export function picturesNamedIn(lines: readonly string[], pictures: readonly PackedPicture[]): PackedPicture[] {
  if (pictures.length === 0) return [];
  const named = new Set(lines.flatMap(hashesIn));
  return pictures.filter(({ sha256 }) => named.has(sha256));
}

export function mediaOf(pictures: readonly PackedPicture[]): Pick<Media, "read"> {
  const bytes = new Map(pictures.map(({ sha256, base64 }) => [sha256, base64]));
  return {
    read(sha256) {
      const found = bytes.get(sha256);
      if (found === undefined) throw new AlidadeError("not_found", `the picture ${sha256} is not in the blob of its rollout`);
      return Buffer.from(found, "base64");
    },
  };
}
