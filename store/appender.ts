/**
 * An append-only file of lines. Appends that arrive while a write is under way leave together in the next one, so that
 * many concurrent calls cost few system calls. A write that fails half-way (a full disk) is cut back to the last whole
 * line, so that nothing acknowledged is ever followed by a torn one.
 */
import { type FileHandle, open } from "node:fs/promises";
import { AlidadeError } from "../errors.ts";
import { toStoreError } from "./store-error.ts";

type Waiting = { text: string; resolve: () => void; reject: (error: unknown) => void };

export class Appender implements AsyncDisposable {
  readonly path: string;
  readonly #file: FileHandle;
  /** Bytes of whole, acknowledged lines. */
  #size: number;
  /** A failed write may have left bytes after them: they are cut off before anything follows. */
  #torn = false;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | null = null;
  #closing: Promise<void> | null = null;

  private constructor(path: string, file: FileHandle, size: number) {
    this.path = path;
    this.#file = file;
    this.#size = size;
  }

  /** Opens or makes the file. Bytes after its last newline are a torn line of a killed process and are cut off. */
  static async open(path: string): Promise<Appender> {
    let file: FileHandle | null = null;
    try {
      file = await open(path, "a+", 0o600);
      const { size } = await file.stat();
      const end = await endOfLastLine(file, size);
      if (end < size) await file.truncate(end);
      return new Appender(path, file, end);
    } catch (error) {
      await file?.close();
      throw toStoreError(path, error);
    }
  }

  /** Resolves when the text is with the operating system. `store_full` and `store_error` leave the file as it was. */
  append(text: string): Promise<void> {
    if (this.#closing) return Promise.reject(new AlidadeError("store_error", `cannot write ${this.path}: it was closed`));
    return new Promise((resolve, reject) => {
      this.#waiting.push({ text, resolve, reject });
      this.#writing ??= this.#drain();
    });
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= (async () => {
      await this.#writing;
      await this.#file.close();
    })();
    return this.#closing;
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await this.#write(Buffer.from(batch.map((one) => one.text).join("")));
        for (const one of batch) one.resolve();
      } catch (error) {
        for (const one of batch) one.reject(toStoreError(this.path, error));
      }
    }
    // Here and not in a `finally` of the caller: whoever appends between the last look and that would wait for ever.
    this.#writing = null;
  }

  async #write(bytes: Buffer): Promise<void> {
    if (this.#torn) await this.#cut();
    this.#torn = true;
    try {
      for (let offset = 0; offset < bytes.length; ) offset += (await this.#file.write(bytes, offset)).bytesWritten;
    } catch (error) {
      // Where this fails too it is tried again before the next write: what counts is why the lines were not written.
      await this.#cut().catch(() => undefined);
      throw error;
    }
    this.#size += bytes.length;
    this.#torn = false;
  }

  async #cut(): Promise<void> {
    await this.#file.truncate(this.#size);
    this.#torn = false;
  }
}

/** Position after the last newline, searched from the end in blocks. */
async function endOfLastLine(file: FileHandle, size: number): Promise<number> {
  const block = Buffer.alloc(64 * 1024);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - block.length);
    const { bytesRead } = await file.read(block, 0, end - start, start);
    const newline = block.subarray(0, bytesRead).lastIndexOf(10);
    if (newline !== -1) return start + newline + 1;
    end = start;
  }
  return 0;
}
