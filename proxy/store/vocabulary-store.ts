/**
 * `vocabulary/<tokenizer fingerprint>.jsonl`: the text of each token, written when the token is first sampled. People read
 * it, and nothing is made of it: a file that cannot be written or read is reported, and costs no call.
 */
import { join } from "node:path";
import { makePrivateFolder } from "./private.ts";
import { VocabularyFile } from "./vocabulary-file.ts";

/** A fingerprint is a hash of ours, and becomes the name of a file. */
const fingerprints = /^\w{1,64}$/;
/** A run has one or two tokenizers. An engine whose tokenizer changes with every probe fills no disk. */
const maxFiles = 16;

export class VocabularyStore implements AsyncDisposable {
  readonly #folder: string;
  readonly #onError: (error: unknown, what: string) => void;
  readonly #files = new Map<string, Promise<VocabularyFile | null>>();

  /** The folder must have no other writer. */
  constructor(folder: string, onError: (error: unknown, what: string) => void) {
    this.#folder = folder;
    this.#onError = onError;
  }

  /** Null where nothing is kept: the fingerprint is unknown, or its file cannot be used. Never rejects. */
  of(fingerprint: string | null): Promise<VocabularyFile | null> {
    if (fingerprint === null || !fingerprints.test(fingerprint)) return none;
    const known = this.#files.get(fingerprint);
    if (known) return known;
    if (this.#files.size === maxFiles) return none;
    const file = this.#open(join(this.#folder, `${fingerprint}.jsonl`));
    this.#files.set(fingerprint, file);
    return file;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const file of this.#files.values()) await (await file)?.[Symbol.asyncDispose]();
  }

  async #open(path: string): Promise<VocabularyFile | null> {
    const fail = (error: unknown): void => this.#onError(error, "keeping texts of tokens, which stops here");
    try {
      await makePrivateFolder(this.#folder);
      return await VocabularyFile.open(path, fail);
    } catch (error) {
      fail(error);
      return null;
    }
  }
}

const none: Promise<null> = Promise.resolve(null);
