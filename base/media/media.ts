/** Where the bytes of pictures lie, by the hash that records name. */
import type { Message } from "../schema/message.ts";
import { imagesIn, isStored, toLinkedPicture, withImages } from "./stored-picture.ts";

export interface Media {
  /**
   * Writes the bytes at once, by the thread that asks, as lines of a log are written: a line that names them never stands alone.
   * Equal bytes are one file. Throws `store_full`, `store_error`.
   */
  keep(sha256: string, bytes: Buffer): void;
  /** Throws `not_found` where they are not there, and `store_error` where they are other bytes. */
  read(sha256: string): Buffer;
}

/** The messages with each picture as it was sent. Messages without pictures are the same objects. */
export function withBytes(messages: Message[], media: Pick<Media, "read"> | null): Message[] {
  if (media === null || !imagesIn(messages).some(isStored)) return messages;
  return messages.map((message) => withImages(message, (part) => (isStored(part) ? toLinkedPicture(part, media.read(part.sha256)) : part)));
}
