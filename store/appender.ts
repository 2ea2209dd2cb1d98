/**
 * An append-only file of lines. Appends that arrive while a write is under way leave together in the next one, so that
 * many concurrent calls cost few system calls. A write that fails half-way (a full disk) is cut back to the last whole
 * line, so that nothing acknowledged is ever followed by a torn one.
 */
import { type FileHandle, open } from "node:fs/promises";
import { AlidadeError, messageOf } from "../errors.ts";

type Waiting = { text: string; resolve: () => void; reject: (error: unknown) => void };

export class Appender implements AsyncDisposable {
  readonly path: string;
  readonly #file: FileHandle;
  #size: number;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | null = null;

  private constructor(path: string, file: FileHandle, size: number) {
    this.path = path;
    this.#file = file;
    this.#size = size;
  }

  /** Opens or makes the file. Bytes after its last newline are a torn line of a killed process and are cut off. */
  static async open(path: string): Promise<Appender> {
    const file = await open(path, "a+", 0o600).catch((error: unknown) => {
      throw storeError(path, error);
    });
    const size = await endOfLastLine(file);
    await file.truncate(size);
    return new Appender(path, file, size);
  }

  append(text: string): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ text, resolve, reject });
      this.#writing ??= this.#drain().finally(() => {
        this.#writing = null;
      });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#writing;
    await this.#file.close();
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await this.#write(Buffer.from(batch.map((one) => one.text).join("")));
        for (const one of batch) one.resolve();
      } catch (error) {
        for (const one of batch) one.reject(storeError(this.path, error));
      }
    }
  }

  async #write(bytes: Buffer): Promise<void> {
    try {
      for (let offset = 0; offset < bytes.length; ) offset += (await this.#file.write(bytes, offset)).bytesWritten;
      this.#size += bytes.length;
    } catch (error) {
      await this.#file.truncate(this.#size);
      throw error;
    }
  }
}

function storeError(path: string, error: unknown): AlidadeError {
  const code = (error as NodeJS.ErrnoException)?.code;
  if (code === "ENOSPC" || code === "EDQUOT")
    return new AlidadeError("store_full", `no space left to record at ${path}: free some space; nothing recorded so far is lost`, {
      cause: error,
    });
  return new AlidadeError("store_error", `cannot write ${path}: ${messageOf(error)}`, { cause: error });
}

/** Position after the last newline, searched from the end in blocks. */
async function endOfLastLine(file: FileHandle): Promise<number> {
  const block = Buffer.alloc(64 * 1024);
  let end = (await file.stat()).size;
  while (end > 0) {
    const start = Math.max(0, end - block.length);
    const { bytesRead } = await file.read(block, 0, end - start, start);
    const newline = block.subarray(0, bytesRead).lastIndexOf(10);
    if (newline !== -1) return start + newline + 1;
    end = start;
  }
  return 0;
}
