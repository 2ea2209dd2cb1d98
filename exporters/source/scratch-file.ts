/** Trajectories on disk while they wait for others, for memory holds one or a team of them. */
import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { readJson } from "../../base/schema/read-json.ts";
import type { Trajectory } from "../../base/schema/trajectory.ts";

/** Where a trajectory lies in the file, in bytes. */
export type Span = { offset: number; length: number };

export class ScratchFile implements AsyncDisposable {
  readonly #folder: string;
  #handle: Promise<FileHandle> | null = null;
  #end = 0;

  /** The file is made below `folder` when something is written, and takes about the size of what waits. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  async write(trajectory: Trajectory): Promise<Span> {
    this.#handle ??= openUnlinked(this.#folder);
    const bytes = Buffer.from(JSON.stringify(trajectory));
    const span = { offset: this.#end, length: bytes.length };
    this.#end += bytes.length;
    await (await this.#handle).write(bytes, 0, bytes.length, span.offset);
    return span;
  }

  async read({ offset, length }: Span): Promise<Trajectory> {
    const bytes = Buffer.alloc(length);
    await (await this.#handle)?.read(bytes, 0, length, offset);
    // It was a trajectory when this process wrote it.
    return readJson(bytes.toString("utf8")) as Trajectory;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#handle)?.close();
  }
}

/** Unlinked as soon as it is open: a killed process leaves nothing behind. */
async function openUnlinked(folder: string): Promise<FileHandle> {
  const own = await mkdtemp(join(folder, "alidade-export-"));
  try {
    return await open(join(own, "trajectories"), "w+", 0o600);
  } finally {
    await rm(own, { recursive: true, force: true });
  }
}
