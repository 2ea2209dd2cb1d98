import type { Part } from "../../base/schema/message.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";

/** Ids of the messages that show an image. */
export function imagesOf({ messages }: Pick<Trajectory, "messages">): Set<string> {
  const shows = (part: Part): boolean =>
    part.type === "image" || (part.type === "tool_result" && part.content.some((inner) => inner.type === "image"));
  return new Set(Object.entries(messages).flatMap(([id, { parts }]) => (parts.some(shows) ? [id] : [])));
}
