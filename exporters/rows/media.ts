/**
 * The pictures of a row, the same in every format of tokens: `media [{sha256, start, length}]`, where `start` counts from the
 * row's first token. The bytes lie in `media/` beside the file, and `alidade.media` (clients/python) makes of them what a
 * trainer wants: pixels depend on the model's own processor, so no file could hold them.
 */
import { imageName, withImages } from "../../base/media/stored-picture.ts";
import type { Message } from "../../base/schema/message.ts";
import type { FlatRow } from "../../reconstruct/index.ts";

export type RowPicture = NonNullable<FlatRow["media"]>[number];

type Pictured = Pick<FlatRow, "media">;

/** To spread into a format's row; nothing where the row has no picture. */
export function mediaOf({ media }: Pictured): { media?: RowPicture[] } {
  return media === undefined || media.length === 0 ? {} : { media };
}

/** For formats that cut a row into pieces: the pictures of tokens `from` to `to`, counted from `from`. One that is cut is dropped. */
export function mediaWithin({ media = [] }: Pictured, from: number, to: number): { media?: RowPicture[] } {
  const whole = media.filter(({ start, length }) => start >= from && start + length <= to);
  return mediaOf({ media: whole.map((picture) => ({ ...picture, start: picture.start - from })) });
}

/** A message that only shows what the row is about: it names the file of a picture, for its bytes would stand in each row. */
export function namingPictures(message: Message): Message {
  return withImages(message, (part) => {
    const { detail } = part;
    return { type: "image", url: imageName(part), ...(detail !== undefined && { detail }) };
  });
}
