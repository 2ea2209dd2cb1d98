/** Reads the texts of all tokens from a `tokenizer.json` in Hugging Face's form. Its vocabulary is byte-level BPE or SentencePiece. */
import { isUtf8 } from "node:buffer";
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { bytesOfPiece } from "../../base/tokens/byte-level.ts";
import { hexOf } from "./hex-of.ts";

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

function fromByteLevel(piece: string): string {
  const bytes = bytesOfPiece(piece);
  return isUtf8(bytes) ? bytes.toString("utf8") : hexOf(bytes);
}
