/** The tokenizer: byte pairs and the tokens that no text is merged into. As in real engines, their names are found in any text. */
import { BytePairs } from "./bpe.ts";
import { merges } from "./merges.ts";

/** `hidden` ones stand for no text (`skip_special_tokens`); the others are tags that a parser reads in the text. */
const addedTokens = [
  { name: "<|endoftext|>", hidden: true, bias: -8 },
  { name: "<|im_start|>", hidden: true, bias: -8 },
  { name: "<|im_end|>", hidden: true, bias: 3 },
  { name: "<think>", hidden: false, bias: -3 },
  { name: "</think>", hidden: false, bias: -3 },
  { name: "<tool_call>", hidden: false, bias: -3 },
  { name: "</tool_call>", hidden: false, bias: -3 },
  { name: "<tool_response>", hidden: false, bias: -8 },
  { name: "</tool_response>", hidden: false, bias: -8 },
] as const;

/**
 * What stands for a picture. They are ids behind those of the model: a prompt holds them, no sample does, and the weights of a
 * seed are the same with them and without.
 */
const pictureTokens = ["<|vision_start|>", "<|image_pad|>", "<|vision_end|>"];

const pairs = new BytePairs(merges);
const ordinary = pairs.bytes.length;
const addedNames = [...addedTokens.map(({ name }) => name), ...pictureTokens];
const addedIds = new Map<string, number>(addedNames.map((name, index) => [name, ordinary + index]));
const addedPattern = new RegExp(addedNames.map((name) => name.replaceAll("|", "\\|")).join("|"), "g");
const addedBytes = addedNames.map((name) => Buffer.from(name));

export const vocabularySize = ordinary + addedTokens.length;
/** Ids that a prompt may hold: those of the model, and those of pictures. */
export const inputIds = ordinary + addedNames.length;
export const picturePad = addedIds.get("<|image_pad|>") as number;
export const endOfTurn = addedIds.get("<|im_end|>") as number;
/** Ids below this one are made of bytes; the ones from here on are the added tokens. */
export const firstAddedId = ordinary;

/**
 * Added to the logits. A trained model opens no message of its own and ends its turn: without a word about the end, a
 * random one would talk until its context is full. With it a free turn has some hundred tokens.
 */
export const logitBias = Float64Array.from({ length: vocabularySize }, (_, id) => addedTokens[id - ordinary]?.bias ?? 0);

/** Token ids of text; the names of added tokens become those tokens. */
export function encode(text: string): number[] {
  const ids: number[] = [];
  let start = 0;
  for (const match of text.matchAll(addedPattern)) {
    append(ids, encodeBytes(Buffer.from(text.slice(start, match.index))));
    ids.push(addedIds.get(match[0]) as number);
    start = match.index + match[0].length;
  }
  append(ids, encodeBytes(Buffer.from(text.slice(start))));
  return ids;
}

/** Token ids of any bytes, valid UTF-8 or not; no added tokens. */
export function encodeBytes(bytes: Uint8Array): number[] {
  return bytes.length === 0 ? [] : pairs.encode(bytes);
}

export function bytesOf(id: number): Uint8Array {
  return pairs.bytes[id] ?? (addedBytes[id - ordinary] as Uint8Array);
}

/** No text shows it: the turn markers. */
export function isHidden(id: number): boolean {
  return id >= vocabularySize || addedTokens[id - ordinary]?.hidden === true;
}

/** Bytes of ids one after another, turn markers included. */
export function decodeBytes(ids: readonly number[]): Uint8Array {
  return Buffer.concat(ids.map(bytesOf));
}

/** What one token says alone: nothing where it is only a part of a character, as vLLM has it. */
export function textOfToken(id: number): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytesOf(id)).replaceAll("\u{fffd}", "");
}

/** Text of tokens that come one by one; the start of a character waits for its end. */
export class TextStream {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });

  feed(id: number): string {
    return isHidden(id) ? "" : this.#decoder.decode(bytesOf(id), { stream: true });
  }

  /** What is left: a replacement character where the last character never ended. */
  finish(): string {
    return this.#decoder.decode();
  }
}

/** The printable name of a token in the way of byte-level vocabularies (a space is Ġ, a newline Ċ). */
export function printableToken(id: number): string {
  if (id >= ordinary) return addedNames[id - ordinary] ?? "";
  return Array.from(bytesOf(id), (byte) => printableBytes[byte]).join("");
}

/** Bytes that print as themselves do; the others take the code points from 256 on, in order. */
const printableBytes = (() => {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const prints = (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
    return String.fromCodePoint(prints ? byte : next++);
  });
})();

function append(ids: number[], more: readonly number[]): void {
  for (const id of more) ids.push(id);
}
