/**
 * The pictures of a row, the same in every format of tokens: `media [{sha256, start, length}]`, where `start` counts from the
 * row's first token. The bytes lie in `media/` beside the file. `alidade.media` (clients/python) turns them into the trainer's
 * inputs when rows are loaded: pixels depend on the model's own processor, so no file holds them.
 */
import { imageName, withImages } from "../../base/media/stored-picture.ts";
import type { Message } from "../../base/schema/message.ts";
import type { FlatRow } from "../../reconstruct/index.ts";

export type RowPicture = NonNullable<FlatRow["media"]>[number];

type Pictured = Pick<FlatRow, "media">;

/** Fields to spread into a format's row; {} if the row has no picture. */
export function mediaOf({ media }: Pictured): { media?: RowPicture[] } {
  return media === undefined || media.length === 0 ? {} : { media };
}

/** For formats that split rows: returns the pictures of tokens `from` to `to`, counted from `from`. Drops a picture that is cut. */
export function mediaWithin({ media = [] }: Pictured, from: number, to: number): { media?: RowPicture[] } {
  const whole = media.filter(({ start, length }) => start >= from && start + length <= to);
  return mediaOf({ media: whole.map((picture) => ({ ...picture, start: picture.start - from })) });
}

/** Replaces each picture by the name of its file, so that the bytes are not repeated in each row. */
export function namingPictures(message: Message): Message {
  return withImages(message, (part) => {
    const { detail } = part;
    return { type: "image", url: imageName(part), ...(detail !== undefined && { detail }) };
  });
}
