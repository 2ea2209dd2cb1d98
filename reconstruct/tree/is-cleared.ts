/**
 * Whether a harness has cleared results or pictures out of an earlier message. Several do so to save context, and leave a
 * line such as `[Old tool result content cleared]`. Any shortening is taken for it: the words are the harness's own.
 */
import { isStored } from "../../base/media/stored-picture.ts";
import type { ImagePart, Message, Part } from "../../base/schema/message.ts";

/** `before`: the message as an earlier request had it; `now`: the one that stands in its place. */
export function isCleared(before: Message, now: Message): boolean {
  return (
    before.role === now.role &&
    before.parts.some(mayBeCleared) &&
    resultsOf(before).join() === resultsOf(now).join() &&
    sizeOf(now) < sizeOf(before)
  );
}

function mayBeCleared({ type }: Part): boolean {
  return type === "tool_result" || type === "image";
}

/** The calls that are answered, in order. */
function resultsOf({ parts }: Message): string[] {
  return parts.flatMap((part) => (part.type === "tool_result" ? [part.call_id] : []));
}

function sizeOf({ parts }: Message): number {
  const shown = parts.flatMap((part) => (part.type === "tool_result" ? part.content : [part]));
  return shown.reduce((sum, part) => sum + (part.type === "text" ? part.text.length : part.type === "image" ? imageSize(part) : 0), 0);
}

function imageSize(part: ImagePart): number {
  return isStored(part) ? part.bytes : part.url.length;
}
