/**
 * Looks up texts of tokens. The engine gave the texts of sampled tokens (`vocabulary/<tokenizer fingerprint>.jsonl` of the
 * run). A tokenizer's own file gives the others, or an engine that has the same tokenizer and is asked.
 */
import { appendFile, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import {
  type LinePlace,
  makePrivateFolder,
  privateFileMode,
  readJsonLines,
  TokenLine,
  tokenLineOf,
  vocabularyFolder,
} from "../../proxy/store/index.ts";
import { AskedTexts, type AskedToken, type TextEngine } from "./asked-texts.ts";
import { hexOf } from "./hex-of.ts";
import { readTokenizer } from "./read-tokenizer.ts";
import type { TokenText, TokenWindow } from "./token-window.ts";

/** Where texts come from beside the run's files. `tokenizer`: path to a `tokenizer.json`. */
export type TextSources = { tokenizer?: string | undefined; engine?: TextEngine | undefined };

/** Bounds one file. Beyond it an answer is kept in memory alone. */
const maxAskedBytes = 64 * 2 ** 20;

export class Vocabulary {
  readonly #folder: string;
  readonly #tokenizer: ReadonlyMap<number, string>;
  readonly #asked: AskedTexts | null;
  readonly #read = new Map<string, { bytes: number; last: LinePlace | undefined }>();
  /** Fingerprint -> id -> text. */
  readonly #texts = new Map<string, Map<number, string>>();

  private constructor(folder: string, tokenizer: ReadonlyMap<number, string>, engine: TextEngine | undefined) {
    this.#folder = join(folder, vocabularyFolder);
    this.#tokenizer = tokenizer;
    this.#asked = engine === undefined ? null : new AskedTexts(engine);
  }

  /** Throws `config_invalid` if the tokenizer's file is not one. */
  static async of(folder: string, { tokenizer, engine }: TextSources = {}): Promise<Vocabulary> {
    return new Vocabulary(folder, tokenizer === undefined ? new Map() : await readTokenizer(tokenizer), engine);
  }

  /** Reads what the run's files gained. A damaged line loses only its token's text. */
  async read(): Promise<void> {
    for (const name of await readdir(this.#folder).catch((): string[] => [])) {
      if (!name.endsWith(".jsonl")) continue;
      const path = join(this.#folder, name);
      const { size } = await stat(path);
      const file = this.#read.get(name) ?? { bytes: 0, last: undefined };
      this.#read.set(name, file);
      if (size === file.bytes) continue;
      file.bytes = size;
      const texts = this.#textsOf(name.split(".", 1)[0] ?? "");
      const take = (value: unknown, place: LinePlace) => {
        file.last = place;
        const line = TokenLine.parse(value);
        texts.set(line.id, textOfLine(line));
      };
      for await (const _ of readJsonLines<void>(path, take, () => undefined, file.last));
    }
  }

  readonly textOf: TokenText = (fingerprint, id) => {
    const own = fingerprint === null ? undefined : this.#texts.get(fingerprint)?.get(id);
    return own ?? this.#tokenizer.get(id) ?? null;
  };

  /** Asks the engine for texts that the window lacks, and keeps them in the run's folder. Returns whether it learned any. Never rejects. */
  async learn(window: TokenWindow): Promise<boolean> {
    if (this.#asked === null) return false;
    const { fingerprint } = this.#asked;
    const ids = window.runs.flatMap((run) => (tokenizerOf(run) === fingerprint ? run.tokens.map(({ id }) => id) : []));
    const found = await this.#asked.textsOf(ids, (id) => this.textOf(fingerprint, id) === null);
    await this.#keep(fingerprint, found);
    return found.length > 0;
  }

  /** Says why tokens of the window have no text, and what shows it; null: all have one. */
  whyUnknown({ runs }: TokenWindow): string | null {
    const lacking = runs.filter(({ tokens }) => tokens.some(({ text }) => text === null));
    if (lacking.length === 0) return null;
    if (this.#asked === null)
      return "their texts are not on record (for a run's folder, `alidade view` with `--tokenizer FILE` or `--engine URL` shows them)";
    const { fingerprint, failure } = this.#asked;
    if (failure !== null) return `the engine could not be asked for them: ${failure}`;
    if (lacking.every((run) => tokenizerOf(run) === null)) return "the record does not say which tokenizer they are of";
    if (lacking.every((run) => tokenizerOf(run) !== fingerprint)) return "the engine has another tokenizer than the one on record";
    return "the engine tells no text of theirs";
  }

  /**
   * The lines stand in a file of their own, because the run may be writing its own one. A folder that cannot be written costs
   * the next reader the questions.
   */
  async #keep(fingerprint: string, found: readonly AskedToken[]): Promise<void> {
    const texts = this.#textsOf(fingerprint);
    const lines = found.flatMap(({ id, bytes }) => tokenLineOf(id, bytes) ?? []).filter(({ id }) => !texts.has(id));
    for (const line of lines) texts.set(line.id, textOfLine(line));
    if (lines.length === 0) return;
    const path = join(this.#folder, `${fingerprint}.asked.jsonl`);
    try {
      await makePrivateFolder(this.#folder);
      const size = (await stat(path).catch(() => null))?.size ?? 0;
      if (size > maxAskedBytes) return;
      // A view that was killed may have left a part of a line.
      await appendFile(path, `${size > 0 ? "\n" : ""}${lines.map((line) => `${JSON.stringify(line)}\n`).join("")}`, {
        mode: privateFileMode,
      });
    } catch {}
  }

  #textsOf(fingerprint: string): Map<number, string> {
    const known = this.#texts.get(fingerprint);
    if (known) return known;
    const texts = new Map<number, string>();
    this.#texts.set(fingerprint, texts);
    return texts;
  }
}

function tokenizerOf({ call }: TokenWindow["runs"][number]): string | null {
  return call?.fingerprints?.tokenizer ?? null;
}

function textOfLine({ text, bytes }: TokenLine): string {
  return text ?? hexOf(bytes ?? []);
}
