/**
 * Opens a run's index for the server. If much of the run is not in it yet, another process reads that and writes the index: the
 * memory that this takes is given back when the process ends, and it can have the larger space for new objects that saves CPU.
 */
import { spawn } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { messageOf } from "../../base/errors.ts";
import { cacheRoot } from "../../base/host/cache-folder.ts";
import { type IndexFile, openIndex } from "../../rollouts/records/index.ts";

/** Bytes of records below which the start of a process takes longer than their reading. */
const fewBytes = 16_000_000;
/** Megabytes for new objects. With Node's default of 16, reading takes 7 % more CPU than with 32; with 2 it takes a quarter more. */
const youngMegabytes = 32;

export type OpenIndexOptions = {
  signal?: AbortSignal | undefined;
  /** Told if the process ended early, in a sentence. */
  note?: ((sentence: string) => void) | undefined;
  /** The program of the process, which has the folder as its argument. */
  program?: string | undefined;
};

/** If the process ends early, or the folder cannot be written, this one reads the records. */
export function openIndexApart(folder: string, { signal, note, program = indexProgram() }: OpenIndexOptions = {}): Promise<IndexFile> {
  return openIndex(folder, async (unread) => {
    if (unread < fewBytes || !(await isWritable(folder))) return;
    const failure = await runProgram(program, folder, signal);
    signal?.throwIfAborted();
    if (failure !== null)
      note?.(
        `the process that makes the index of ${folder} ended early (${failure}), so the server makes it and keeps the memory that this takes; if it ends too, make the index on a machine with more memory: alidade ls --run ${folder}`,
      );
  });
}

function indexProgram(): string {
  return fileURLToPath(new URL(`./index-process${extname(fileURLToPath(import.meta.url))}`, import.meta.url));
}

function isWritable(folder: string): Promise<boolean> {
  return access(folder, constants.W_OK).then(
    () => true,
    () => false,
  );
}

/** Returns why it ended early; null if it did its work. */
async function runProgram(program: string, folder: string, signal?: AbortSignal): Promise<string | null> {
  signal?.throwIfAborted();
  // The cache of compiled sources that bin/alidade.js keeps.
  const env = { ...process.env, NODE_COMPILE_CACHE: join(cacheRoot(), "compiled") };
  const child = spawn(process.execPath, [`--max-semi-space-size=${youngMegabytes}`, program, folder], { stdio: "ignore", env });
  const { promise: ended, resolve } = Promise.withResolvers<string | null>();
  child.once("error", (error) => resolve(messageOf(error)));
  child.once("exit", (code, signalName) => resolve(code === 0 ? null : (signalName ?? `exit code ${code}`)));
  const stop = (): void => void child.kill("SIGKILL");
  signal?.addEventListener("abort", stop, { once: true });
  // A server that exits must not leave it behind.
  process.once("exit", stop);
  try {
    return await ended;
  } finally {
    signal?.removeEventListener("abort", stop);
    process.off("exit", stop);
  }
}
