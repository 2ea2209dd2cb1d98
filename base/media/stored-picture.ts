/** Pictures between the two forms of a message's part: as a `data:` URL, and as the hash of bytes that are stored. */
import { hash } from "node:crypto";
import { AlidadeError } from "../errors.ts";
import type { ImagePart, LinkedPicture, Message, Part, StoredPicture } from "../schema/message.ts";
import { readPicture } from "./read-picture.ts";

const dataUrl = /^data:(image\/[\w.+-]{1,40});base64,/;

/**
 * The picture as it is stored, and its bytes. Null where it stays as it was sent: an address, bytes that are no picture that
 * we know, or base64 that does not come back the same, for the engine gets the URL that the harness sent.
 */
export function toStoredPicture({ url, detail }: LinkedPicture): { part: StoredPicture; bytes: Buffer } | null {
  const [head, media_type] = dataUrl.exec(url.slice(0, 80)) ?? [];
  if (head === undefined || media_type === undefined) return null;
  const base64 = url.slice(head.length);
  const bytes = Buffer.from(base64, "base64");
  const facts = readPicture(bytes);
  if (facts === null || bytes.toString("base64") !== base64) return null;
  const { width, height } = facts;
  const part = { type: "image" as const, sha256: hash("sha256", bytes), media_type, bytes: bytes.length, width, height };
  return { part: { ...part, ...(detail !== undefined && { detail }) }, bytes };
}

/** As it was sent. */
export function toLinkedPicture({ media_type, detail }: StoredPicture, bytes: Buffer): LinkedPicture {
  return { type: "image", url: `data:${media_type};base64,${bytes.toString("base64")}`, ...(detail !== undefined && { detail }) };
}

export function isStored(part: ImagePart): part is StoredPicture {
  return "sha256" in part;
}

/** What two pictures differ by: their URL, or the place of their bytes. */
export function imageName(part: ImagePart): string {
  return isStored(part) ? `media/${part.sha256}` : part.url;
}

/** For what takes bytes alone. Throws `not_found` for a picture whose bytes were not put back. */
export function imageUrl(part: ImagePart): string {
  if (!isStored(part)) return part.url;
  throw new AlidadeError("not_found", `the bytes of the picture ${part.sha256} are not at hand: name the folder that holds them (media)`);
}

/** In the order in which they stand. */
export function imagesIn(messages: readonly Message[]): ImagePart[] {
  return messages.flatMap(({ parts }) =>
    parts.flatMap((part): ImagePart[] => {
      if (part.type === "image") return [part];
      return part.type === "tool_result" ? part.content.filter((inner) => inner.type === "image") : [];
    }),
  );
}

/** The message with other pictures; the message itself where it shows none. */
export function withImages(message: Message, other: (part: ImagePart) => ImagePart): Message {
  if (imagesIn([message]).length === 0) return message;
  return {
    ...message,
    parts: message.parts.map((part): Part => {
      if (part.type === "image") return other(part);
      if (part.type !== "tool_result") return part;
      return { ...part, content: part.content.map((inner) => (inner.type === "image" ? other(inner) : inner)) };
    }),
  };
}
