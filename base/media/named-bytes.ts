/** Finds the stored bytes that a trajectory names: pictures, and numbers of tokens. A copy of the trajectory needs them too. */
import type { Trajectory } from "../schema/trajectory.ts";
import type { Media } from "./media.ts";
import { imagesIn, isStored } from "./stored-picture.ts";

/** Returns each hash once. */
export function namedBytes({ messages, blobs }: Pick<Trajectory, "messages" | "blobs">): string[] {
  return [...new Set([...namedPictures({ messages }), ...blobs.map(({ ref }) => ref)])];
}

export function namedPictures({ messages }: Pick<Trajectory, "messages">): string[] {
  return imagesIn(Object.values(messages)).flatMap((part) => (isStored(part) ? [part.sha256] : []));
}

/** Returns all hashes in a line of an export. Few formats name experts, so rows name fewer bytes than their rollout. */
export function hashesIn(line: string): string[] {
  return line.match(hashes) ?? [];
}

const hashes = /(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/g;

/** Copies the bytes with these hashes. Throws what `read` and `keep` throw. */
export function copyNamed(hashes: Iterable<string>, from: Pick<Media, "read">, to: Pick<Media, "keep">): void {
  for (const sha256 of hashes) to.keep(sha256, from.read(sha256));
}
