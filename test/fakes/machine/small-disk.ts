/** A file system of a few hundred kilobytes, which a test fills and empties. */
import { execFileSync } from "node:child_process";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class SmallDisk implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async mount(kilobytes = 512): Promise<SmallDisk> {
    const path = await mkdtemp(join(tmpdir(), "alidade-small-disk-"));
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${kilobytes}k`, "tmpfs", path]);
    return new SmallDisk(path);
  }

  /**
   * No page is left. What fits into the last page of a file that is there still goes in, so only writes of more than 4
   * KiB surely fail, and those fail half-way.
   */
  fill(): void {
    const file = openSync(this.#ballast, "a");
    try {
      for (const size of [65_536, 4_096, 1]) for (;;) if (!write(file, size)) break;
    } finally {
      closeSync(file);
    }
  }

  free(): void {
    rmSync(this.#ballast, { force: true });
  }

  get #ballast(): string {
    return join(this.path, "ballast");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    execFileSync("umount", ["-l", this.path]);
    await rm(this.path, { recursive: true, force: true });
  }
}

function write(file: number, size: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(size)) === size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") return false;
    throw error;
  }
}
