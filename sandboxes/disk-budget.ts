/** What a run leaves of the engine's disk: a budget for images, and space below which nothing new is begun. */
import { AlidadeError, messageOf } from "../base/errors.ts";
import type { StoredImage } from "./image-store.ts";
import type { SandboxBackend } from "./sandbox.ts";

export type DiskRules = {
  /** Gigabytes that images which Alidade made or pulled may take together; null: any. */
  images_gb: number | null;
  /** Free gigabytes below which nothing new is begun. */
  keep_free_gb: number;
};

const gigabyte = 1e9;
const mebibyte = 1024 ** 2;

/** An answer of the engine takes it tens of milliseconds, and a disk fills in minutes. */
const freshMs = 5_000;

export class DiskBudget {
  readonly #backend: Pick<SandboxBackend, "room" | "images" | "title">;
  readonly #rules: DiskRules;
  #looked = { at: Number.NEGATIVE_INFINITY, free: null as number | null };

  constructor(backend: Pick<SandboxBackend, "room" | "images" | "title">, rules: DiskRules) {
    this.#backend = backend;
    this.#rules = rules;
  }

  /** Throws `store_full` where too little is free for new work; where it is unknown (another machine's engine) never. */
  async assertFree(signal: AbortSignal): Promise<void> {
    const { keep_free_gb } = this.#rules;
    if (keep_free_gb === 0) return;
    if (performance.now() - this.#looked.at > freshMs || this.#isShort) {
      const { disk_mb } = await this.#backend.room(signal);
      this.#looked = { at: performance.now(), free: disk_mb };
    }
    if (!this.#isShort) return;
    const free = (((this.#looked.free ?? 0) * mebibyte) / gigabyte).toFixed(1);
    throw new AlidadeError(
      "store_full",
      `${free} GB are free where ${this.#backend.title} keeps sandboxes, less than disk.keep_free_gb (${keep_free_gb}): nothing new is begun until space is freed (alidade images prune, alidade reap)`,
      { param: "disk.keep_free_gb" },
    );
  }

  get #isShort(): boolean {
    const { free } = this.#looked;
    return free !== null && free * mebibyte < this.#rules.keep_free_gb * gigabyte;
  }

  /** Removes images over the budget, least recently used first and none that is in use. Sentences for people; rejects never. */
  async trim(signal: AbortSignal): Promise<{ removed: string[]; problems: string[] }> {
    const { images_gb } = this.#rules;
    if (images_gb === null || !this.#backend.images) return { removed: [], problems: [] };
    try {
      const budget = images_gb * gigabyte;
      const { removed, failed, bytes_left } = await this.#backend.images.prune({ keep: null, budget, dry_run: false }, signal);
      const over = `images take more than disk.images_gb (${images_gb}): those that are left are in use, or were not made or pulled by Alidade`;
      return {
        removed: removed.map((image) => `${wordsOf(image)} (images took more than disk.images_gb, ${images_gb})`),
        problems: [
          ...failed.map(({ image, message }) => `could not remove ${wordsOf(image)}: ${message}`),
          ...(bytes_left > budget ? [over] : []),
        ],
      };
    } catch (error) {
      return { removed: [], problems: signal.aborted ? [] : [`images over disk.images_gb could not be removed: ${messageOf(error)}`] };
    }
  }
}

function wordsOf({ kind, names, id }: StoredImage): string {
  return `${kind === "mount" ? "volume" : "image"} ${names[0] ?? id}`;
}
