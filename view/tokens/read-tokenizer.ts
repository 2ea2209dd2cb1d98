/** Reads the texts of all tokens from a `tokenizer.json` in Hugging Face's form. Its vocabulary is byte-level BPE or SentencePiece. */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";

const TokenizerFile = z.looseObject({
  model: z.looseObject({ vocab: z.union([z.record(z.string(), z.number().int()), z.array(z.tuple([z.string(), z.number()]))]) }),
  added_tokens: z.array(z.looseObject({ id: z.number().int(), content: z.string() })).default([]),
  decoder: z.unknown().optional(),
});

/** Throws `config_invalid` that names the path. */
export async function readTokenizer(path: string): Promise<Map<number, string>> {
  const file = await readFile(path, "utf8").then(
    (text) => TokenizerFile.parse(readJson(text)),
    (error: unknown) => {
      throw new AlidadeError("config_invalid", `--tokenizer is ${path}, which cannot be read: ${messageOf(error)}`, { param: "tokenizer" });
    },
  );
  const { vocab } = file.model;
  const entries: [string, number][] = Array.isArray(vocab) ? vocab.map(([piece], id) => [piece, id]) : Object.entries(vocab);
  const isByteLevel = JSON.stringify(file.decoder ?? null).includes('"ByteLevel"');
  const texts = new Map(entries.map(([piece, id]) => [id, isByteLevel ? fromByteLevel(piece) : piece.replaceAll("\u2581", " ")]));
  for (const { id, content } of file.added_tokens) texts.set(id, content);
  return texts;
}

/** GPT-2's alphabet: maps each byte to one printable character, and printable bytes to themselves. */
const byteOf = new Map<string, number>();
for (let byte = 0, next = 256; byte < 256; byte++) {
  const isPrintable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  byteOf.set(String.fromCodePoint(isPrintable ? byte : next++), byte);
}

function fromByteLevel(piece: string): string {
  const bytes = [...piece].map((character) => byteOf.get(character));
  if (bytes.includes(undefined)) return piece;
  const buffer = Buffer.from(bytes as number[]);
  const text = buffer.toString("utf8");
  if (Buffer.from(text).equals(buffer)) return text;
  return [...buffer].map((byte) => `<${byte.toString(16).padStart(2, "0")}>`).join("");
}
