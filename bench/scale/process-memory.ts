/**
 * What a process's memory holds. Also a module to start a process with (`--import`, which needs no flag): such a process says it
 * on standard error each time that it gets SIGUSR2.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** MB. What is resident, and what is in use when all garbage is collected: on the heap, and outside of it. */
export type ProcessMemory = { resident: number; heap: number; outside: number };

/** Resident memory is read first: a collection by force gives pages back that a service would keep. */
export async function processMemory(): Promise<ProcessMemory> {
  const resident = megabytes(process.memoryUsage().rss);
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  // What finalizers let go is garbage for the next collection.
  for (let times = 0; times < 3; times++) {
    collect();
    await sleep(1);
  }
  const { heapUsed, external } = process.memoryUsage();
  return { resident, heap: megabytes(heapUsed), outside: megabytes(external) };
}

const megabytes = (bytes: number): number => Math.round((bytes / 2 ** 20) * 10) / 10;

export const memoryMark = "process memory: ";

if (process.env.PROCESS_MEMORY === "say")
  process.on("SIGUSR2", async () => {
    process.stderr.write(`${memoryMark}${JSON.stringify(await processMemory())}\n`);
  });
