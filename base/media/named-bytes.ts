/** Which stored bytes a trajectory names: its pictures, and numbers of its tokens. They go where it goes. */
import type { Trajectory } from "../schema/trajectory.ts";
import { imagesIn, isStored } from "./stored-picture.ts";

/** Hashes, each once. */
export function namedBytes({ messages, blobs }: Pick<Trajectory, "messages" | "blobs">): string[] {
  const pictures = imagesIn(Object.values(messages)).flatMap((part) => (isStored(part) ? [part.sha256] : []));
  return [...new Set([...pictures, ...blobs.map(({ ref }) => ref)])];
}
