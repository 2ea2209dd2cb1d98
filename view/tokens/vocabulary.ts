/**
 * Looks up texts of tokens. The engine gave the texts of sampled tokens (`vocabulary/<tokenizer fingerprint>.jsonl` of the
 * run). A tokenizer's own file gives the others.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { type LinePlace, readJsonLines, TokenLine, vocabularyFolder } from "../../proxy/store/index.ts";
import { readTokenizer } from "./read-tokenizer.ts";
import type { TokenText } from "./token-window.ts";

type ReadFile = { bytes: number; last: LinePlace | undefined; texts: Map<number, string> };

export class Vocabulary {
  readonly #folder: string;
  readonly #tokenizer: ReadonlyMap<number, string>;
  readonly #files = new Map<string, ReadFile>();

  private constructor(folder: string, tokenizer: ReadonlyMap<number, string>) {
    this.#folder = join(folder, vocabularyFolder);
    this.#tokenizer = tokenizer;
  }

  /** `tokenizer`: path to a `tokenizer.json`. Throws `config_invalid` if the file is not one. */
  static async of(folder: string, tokenizer?: string): Promise<Vocabulary> {
    return new Vocabulary(folder, tokenizer === undefined ? new Map() : await readTokenizer(tokenizer));
  }

  /** Reads what the run's files gained. A damaged line loses only its token's text. */
  async read(): Promise<void> {
    for (const name of await readdir(this.#folder).catch((): string[] => [])) {
      if (!name.endsWith(".jsonl")) continue;
      const path = join(this.#folder, name);
      const { size } = await stat(path);
      const file = this.#files.get(name) ?? { bytes: 0, last: undefined, texts: new Map() };
      this.#files.set(name, file);
      if (size === file.bytes) continue;
      file.bytes = size;
      const take = (value: unknown, place: LinePlace) => {
        file.last = place;
        const { id, text, bytes } = TokenLine.parse(value);
        file.texts.set(id, text ?? hexOf(bytes ?? []));
      };
      for await (const _ of readJsonLines<void>(path, take, () => undefined, file.last));
    }
  }

  readonly textOf: TokenText = (fingerprint, id) => {
    const own = fingerprint === null ? undefined : this.#files.get(`${fingerprint}.jsonl`)?.texts.get(id);
    return own ?? this.#tokenizer.get(id) ?? null;
  };
}

/** Bytes of an incomplete character have no text. */
function hexOf(bytes: readonly number[]): string {
  return bytes.map((byte) => `<${byte.toString(16).padStart(2, "0")}>`).join("");
}
