/** Reads pictures of a record as bytes of a fixed type. SVG is refused, because it can hold programs. */

import { readPicture } from "../../base/media/read-picture.ts";

const dataUrl = /^data:image\/(?:png|jpeg|jpg|gif|webp);base64,/;

export type Picture = { type: string; bytes: Buffer };

/** null: not a picture that pages show. */
export function pictureOf(url: string): Picture | null {
  const head = dataUrl.exec(url.slice(0, 40))?.[0];
  if (head === undefined) return null;
  return pictureIn(Buffer.from(url.slice(head.length), "base64"));
}

/** The type is told from the bytes: the agent wrote the one in the record, so that is not trusted. */
export function pictureIn(bytes: Buffer): Picture | null {
  const facts = readPicture(bytes);
  return facts && { type: facts.kind, bytes };
}
