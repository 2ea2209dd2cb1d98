/**
 * Pictures, as a model with vision takes them: a place holder of the prompt becomes a run of pad tokens, in the order in which
 * they stand, also where a text spelled the place holder. What the model reads there is made of the picture's bytes. So the ids of two pictures are the
 * same and their numbers are not, and a scoring without the pictures gives other numbers.
 */
import { createHash } from "node:crypto";
import type { ChatMessage } from "./template.ts";
import { firstAddedId, picturePad, vocabularySize } from "./tokenizer/vocabulary.ts";
import { WireError } from "./wire-error.ts";

/** Pads a picture, whatever its size. */
export const padsOfPicture = 64;
/** What vLLM is started with for tests: `--limit-mm-per-prompt`. */
const maxPictures = 256;

export type PadRun = { offset: number; length: number };

export type PicturedPrompt = {
  /** With the pads of each picture: what answers show. */
  ids: number[];
  /** What the model reads: in the place of pads the picture's own. */
  modelIds: number[];
  placeholders: PadRun[];
  /** Hashes of the bytes of the pictures. */
  hashes: string[];
};

/** `ids`: one pad a picture. Throws 400 for a picture without a place, and for what is no picture. */
export function expandPictures(ids: readonly number[], urls: readonly string[]): PicturedPrompt {
  if (urls.length > maxPictures) throw new WireError(400, `At most ${maxPictures} image(s) may be provided in one prompt.`, "messages");
  const prompt: PicturedPrompt = { ids: [], modelIds: [], placeholders: [], hashes: [] };
  let next = 0;
  for (const id of ids) {
    const url = id === picturePad ? urls[next] : undefined;
    if (url === undefined) {
      prompt.ids.push(id);
      prompt.modelIds.push(readAs(id));
      continue;
    }
    const bytes = bytesOf(url);
    prompt.placeholders.push({ offset: prompt.ids.length, length: padsOfPicture });
    prompt.hashes.push(createHash("sha256").update(bytes).digest("hex"));
    for (let at = 0; at < padsOfPicture; at += 1) prompt.ids.push(picturePad);
    prompt.modelIds.push(...idsOf(bytes));
    next += 1;
  }
  if (next < urls.length)
    throw new WireError(400, `The prompt has ${next} image place holder(s) for ${urls.length} image(s).`, "token_ids");
  return prompt;
}

/** Addresses of the pictures of a conversation, in their order. */
export function picturesOf(messages: readonly ChatMessage[]): string[] {
  return messages.flatMap(({ content }) => (typeof content === "string" ? [] : (content ?? []).flatMap(pictureOf)));
}

function pictureOf({ type, image_url }: Record<string, unknown>): string[] {
  if (type !== "image_url") return [];
  const url = typeof image_url === "string" ? image_url : (image_url as { url?: unknown } | null)?.url;
  if (typeof url !== "string") throw new WireError(400, "image_url.url is no string", "messages");
  return [url];
}

function bytesOf(url: string): Buffer {
  const base64 = /^data:image\/[\w.+-]+;base64,([\w+/=]+)$/.exec(url)?.[1];
  if (base64 === undefined) throw new WireError(400, "Only images as data: URLs are read here.", "messages");
  return Buffer.from(base64, "base64");
}

/** Fixed by the bytes. */
function idsOf(bytes: Buffer): number[] {
  const ids: number[] = [];
  for (let part = 0; ids.length < padsOfPicture; part += 1) {
    const digest = createHash("sha256").update(String(part)).update(bytes).digest();
    for (let at = 0; at < digest.length; at += 2) ids.push(digest.readUInt16BE(at) % firstAddedId);
  }
  return ids.slice(0, padsOfPicture);
}

/** The tokens of pictures are inputs alone: the model has no numbers of its own for them. */
export function readAs(id: number): number {
  return id < vocabularySize ? id : firstAddedId;
}
