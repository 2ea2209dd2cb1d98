/** The images that a sandboxed client names by their addresses, as `data:` URLs: so the record holds what the engine saw. */
import { isStored, withImages } from "../../base/media/stored-picture.ts";
import type { Message } from "../../base/schema/message.ts";
import type { Network } from "../../base/wire/network.ts";
import type { Session } from "../session/session.ts";
import { fetchImage } from "./fetch-image.ts";
import { imageOutside, imageUrlsOf, isImageData } from "./sandboxed-request.ts";

/** Characters of one session: each image stays in memory as long as its conversation does. */
const maxCharacters = 128 * 1024 * 1024;

/**
 * Characters of one request: a short address may appear many times, and each time the image counts. As large as two bodies
 * of the allowed size.
 */
const maxCharactersInRequest = 64 * 1024 * 1024;

/** The messages with every image inside. An image is fetched once a session, so that a conversation keeps its beginning. */
export async function withImagesInside(session: Session, messages: Message[], signal: AbortSignal, network?: Network): Promise<Message[]> {
  const origins = session.spec.fetch_images;
  const outside = new Set(origins.length === 0 ? [] : messages.flatMap(imageUrlsOf).filter((url) => !isImageData(url)));
  if (outside.size === 0) return messages;
  const { images } = session.sent;
  for (const url of outside) {
    if (images.has(url)) continue;
    const image = await fetchImage(url, origins, signal, network);
    const held = images.values().reduce((sum, one) => sum + one.length, 0);
    if (held + image.length > maxCharacters) throw imageOutside(url, `no more than ${maxCharacters} characters of images are fetched`);
    images.set(url, images.get(url) ?? image);
  }
  assertNotTooMany(messages, images);
  return messages.map((message) =>
    withImages(message, (part) => (isStored(part) ? part : { ...part, url: images.get(part.url) ?? part.url })),
  );
}

function assertNotTooMany(messages: Message[], images: ReadonlyMap<string, string>): void {
  let put = 0;
  for (const url of messages.flatMap(imageUrlsOf)) {
    put += images.get(url)?.length ?? 0;
    if (put > maxCharactersInRequest)
      throw imageOutside(url, `a request holds no more than ${maxCharactersInRequest} characters of fetched images`);
  }
}
