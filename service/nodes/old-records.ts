/**
 * Removes what is old of a machine's records: logs of sessions, their pictures, and works, which nothing of a service needs once the trajectory is
 * stored. In weeks they would fill its disk.
 */
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../base/errors.ts";

export type OldRecordsOptions = {
  /** With the rooms `sessions` and `blobs`. */
  folder: string;
  /** Since the last write. More than a rollout takes from its run to its grading. */
  seconds: number;
  /** A session that is in memory is written on. */
  isOpen: (sessionId: string) => boolean;
  /** Hears of the first failure in a row. */
  note: (text: string) => void;
};

/** Removing is a matter of days; a look at a hundred thousand files takes seconds. */
const defaultPauseMs = 10 * 60_000;

export class OldRecords implements AsyncDisposable {
  readonly #options: OldRecordsOptions;
  readonly #stop = new AbortController();
  readonly #work: Promise<void>;

  constructor(options: OldRecordsOptions, pauseMs = defaultPauseMs) {
    this.#options = options;
    this.#work = this.#removeOn(pauseMs, this.#stop.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#work;
  }

  async #removeOn(pauseMs: number, signal: AbortSignal): Promise<void> {
    for (let isFailing = false; !signal.aborted; ) {
      try {
        await removeOld(this.#options, Date.now(), signal);
        isFailing = false;
      } catch (error) {
        if (!isFailing && !signal.aborted) this.#options.note(`old records are not removed: ${messageOf(error)}; it is tried again`);
        isFailing = true;
      }
      await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }
}

/** `now`: Unix milliseconds. Ends early when the signal fires. Throws what the file system says. */
export async function removeOld(
  { folder, seconds, isOpen }: Omit<OldRecordsOptions, "note">,
  now: number,
  signal: AbortSignal,
): Promise<void> {
  const before = now - seconds * 1000;
  const isLog = (name: string) => name.endsWith(".jsonl") && !isOpen(name.slice(0, -".jsonl".length));
  const isPicture = (name: string) => /^[0-9a-f]{64}$/.test(name);
  const isWork = (name: string) => name.endsWith(".tar.gz");
  for (const [room, mayGo] of [
    ["sessions", isLog],
    ["blobs", isWork],
    ["sessions/media", isPicture],
  ] as const)
    for (const name of await namesIn(join(folder, room))) {
      if (signal.aborted) return;
      const path = join(folder, room, name);
      if (mayGo(name) && (await stat(path)).mtimeMs < before) await rm(path, { force: true });
    }
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
}
