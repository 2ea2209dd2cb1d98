/** The texts of one tokenizer's tokens, in a file that grows by a line an id. */
import { Appender } from "./appender.ts";
import { readJsonLines } from "./json-lines.ts";
import { TokenLine, tokenLineOf } from "./token-line.ts";

/** The largest vocabularies have 262 144 ids. A bit for each of these takes 128 KiB. */
const maxIds = 2 ** 20;
/** A whole vocabulary of 262 144 ids takes some 10 MB. A viewer holds all of it, so a strange engine cannot write more than this. */
const maxFileBytes = 64 * 2 ** 20;

/** What an engine says of a token. */
type ToldToken = { id: number | null; text: string; bytes: number[] | null };

export class VocabularyFile implements AsyncDisposable {
  readonly #file: Appender;
  readonly #onError: (error: unknown) => void;
  /** A bit for each id that was looked at. */
  readonly #seen = new Uint8Array(maxIds / 8);
  /** The file is full or cannot be written. */
  #isOver = false;

  private constructor(file: Appender, onError: (error: unknown) => void) {
    this.#file = file;
    this.#onError = onError;
  }

  /** Opens or makes the file, and reads which ids it has. `onError` is called once, when a line cannot be written. */
  static async open(path: string, onError: (error: unknown) => void): Promise<VocabularyFile> {
    await using scope = new AsyncDisposableStack();
    const texts = new VocabularyFile(scope.use(await Appender.open(path)), onError);
    const note = (value: unknown): void => void texts.#see(TokenLine.parse(value).id);
    // A damaged line costs its token's text until the token comes again.
    for await (const _ of readJsonLines<void>(path, note, () => undefined));
    scope.move();
    return texts;
  }

  lacks(id: number): boolean {
    return id < maxIds && !this.#isOver && ((this.#seen[id >> 3] as number) & (1 << (id & 7))) === 0;
  }

  /** Writes those that are new. The first sight of an id decides: one without a text of its own is not looked at again. */
  keep(tokens: readonly ToldToken[]): void {
    const lines = tokens.map((token) => this.#lineOf(token)).join("");
    if (lines === "" || this.#isOver) return;
    this.#isOver = this.#file.size + Buffer.byteLength(lines) > maxFileBytes;
    if (this.#isOver) return;
    this.#file.append(lines).catch((error: unknown) => {
      if (!this.#isOver) this.#onError(error);
      this.#isOver = true;
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    return this.#file[Symbol.asyncDispose]();
  }

  /** Empty where it is known or has no text. */
  #lineOf({ id, text, bytes }: ToldToken): string {
    if (id === null || !this.lacks(id) || text === "" || text === placeholder(id)) return "";
    this.#see(id);
    const line = bytes === null ? null : tokenLineOf(id, Buffer.from(bytes));
    return line === null ? "" : `${JSON.stringify(line)}\n`;
  }

  #see(id: number): void {
    if (id < maxIds) this.#seen[id >> 3] = (this.#seen[id >> 3] as number) | (1 << (id & 7));
  }
}

/** What vLLM sends instead of a text under `return_tokens_as_token_ids`. */
function placeholder(id: number): string {
  return `token_id:${id}`;
}
