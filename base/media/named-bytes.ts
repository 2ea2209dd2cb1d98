/** Lists the stored bytes that a trajectory names: its pictures, and blobs of its tokens. They travel with the trajectory. */
import type { Trajectory } from "../schema/trajectory.ts";
import { imagesIn, isStored } from "./stored-picture.ts";

/** Returns each hash once. */
export function namedBytes({ messages, blobs }: Pick<Trajectory, "messages" | "blobs">): string[] {
  const pictures = imagesIn(Object.values(messages)).flatMap((part) => (isStored(part) ? [part.sha256] : []));
  return [...new Set([...pictures, ...blobs.map(({ ref }) => ref)])];
}
