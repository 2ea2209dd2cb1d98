/**
 * An append-only file of lines. Lines are written at once and in order, by the thread that asks: to hand a few kilobytes
 * to the operating system's cache takes a tenth of what it takes to hand them to another thread. A write that fails
 * half-way (a full disk) is cut back to the last whole line, so that nothing acknowledged is ever followed by a torn one.
 */
import { ftruncateSync, writeSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { AlidadeError } from "../../base/errors.ts";
import { privateFileMode } from "./private.ts";
import { toStoreError } from "./store-error.ts";

export class Appender implements AsyncDisposable {
  readonly path: string;
  readonly #file: FileHandle;
  /** Bytes of whole, acknowledged lines. */
  #size: number;
  /** A failed write may have left bytes after them: they are cut off before anything follows. */
  #torn = false;
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
      file = await open(path, "a+", privateFileMode);
      const { size } = await file.stat();
      const end = await endOfLastLine(file, size);
      if (end < size) await file.truncate(end);
      return new Appender(path, file, end);
    } catch (error) {
      await file?.close();
      throw toStoreError(path, error);
    }
  }

  get size(): number {
    return this.#size;
  }

  /** Resolves when the text is with the operating system. `store_full` and `store_error` leave the file as it was. */
  async append(text: string): Promise<void> {
    if (this.#closing) throw new AlidadeError("store_error", `cannot write ${this.path}: it was closed`);
    try {
      this.#write(Buffer.from(text));
    } catch (error) {
      throw toStoreError(this.path, error);
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#closing ??= this.#file.close();
    return this.#closing;
  }

  #write(bytes: Buffer): void {
    if (this.#torn) this.#cut();
    this.#torn = true;
    try {
      for (let offset = 0; offset < bytes.length; ) offset += writeSync(this.#file.fd, bytes, offset);
    } catch (error) {
      this.#cutIfPossible();
      throw error;
    }
    this.#size += bytes.length;
    this.#torn = false;
  }

  /** Where this fails too it is tried again before the next write: what counts is why the lines were not written. */
  #cutIfPossible(): void {
    try {
      this.#cut();
    } catch {}
  }

  #cut(): void {
    ftruncateSync(this.#file.fd, this.#size);
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
