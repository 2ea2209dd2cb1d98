/** Reads the pieces that a server's tokenizer route lists for a text. What alphabet they are written in is not told: the text shows it. */
import { bytesOfPiece } from "../../base/tokens/byte-level.ts";

/** One token and the bytes that it stands for: a part of a character has no text of its own. */
export type SpelledToken = { id: number; bytes: Buffer };

const alphabets: readonly ((piece: string) => Buffer)[] = [bytesOfPiece, bytesOfMark, (piece) => Buffer.from(piece)];

/** Empty unless all pieces together, in one of the known alphabets, are the text byte for byte. */
export function spelledPieces(text: string, ids: readonly number[], pieces: readonly string[]): SpelledToken[] {
  if (ids.length !== pieces.length) return [];
  // Some tokenizers compose characters first, and some put a space before the text.
  const allowed = [text, text.normalize("NFC"), ` ${text}`].map((one) => Buffer.from(one));
  for (const bytesOf of alphabets) {
    const spelled = pieces.map(bytesOf);
    const whole = Buffer.concat(spelled);
    if (allowed.some((one) => one.equals(whole))) return ids.map((id, at) => ({ id, bytes: spelled[at] as Buffer }));
  }
  return [];
}

/** SentencePiece: a mark for each space, and `<0x0A>` for a byte. */
function bytesOfMark(piece: string): Buffer {
  const byte = /^<0x([0-9A-F]{2})>$/.exec(piece)?.[1];
  return byte === undefined ? Buffer.from(piece.replaceAll("\u2581", " ")) : Buffer.from(byte, "hex");
}
