/** Stores the pictures of a request before the line of the log that names them, so that each stands on the disk once. */
import { isStored, toStoredPicture, withImages } from "../../base/media/stored-picture.ts";
import type { ImagePart, Message } from "../../base/schema/message.ts";
import type { Session } from "../session/session.ts";

/** The messages as the log holds them: pictures by their hash. Throws `store_full`, `store_error`. */
export function keepPictures(session: Session, messages: Message[]): Message[] {
  const { media } = session;
  if (media === null) return messages;
  const keep = (part: ImagePart): ImagePart => {
    const stored = isStored(part) ? null : toStoredPicture(part);
    if (stored === null) return part;
    media.keep(stored.part.sha256, stored.bytes);
    return stored.part;
  };
  const { stored } = session.sent;
  return messages.map((message) => {
    const known = stored.get(message) ?? withImages(message, keep);
    stored.set(message, known);
    return known;
  });
}
