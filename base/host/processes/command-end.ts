/** What ends a command: itself, its time or its caller. */
import { setTimeout as sleep } from "node:timers/promises";

export type CommandEnd = "ended" | "timeout" | "abort";

export type CommandLimits = {
  timeout_ms?: number;
  /** Counts as its time: for a clock that stands still at times. */
  deadline?: AbortSignal;
  signal?: AbortSignal;
};

/**
 * What comes first. `watch` is a second way to see that the command has ended; its signal fires when the answer is
 * known.
 */
export async function commandEnd(
  ended: Promise<unknown>,
  { timeout_ms, deadline, signal }: CommandLimits,
  watch?: (over: AbortSignal) => Promise<unknown>,
): Promise<CommandEnd> {
  const over = new AbortController();
  const waits: Promise<CommandEnd>[] = [ended.then(() => "ended")];
  if (timeout_ms !== undefined) waits.push(after(timeout_ms, over.signal));
  if (deadline !== undefined) waits.push(fired(deadline, "timeout", over.signal));
  if (signal !== undefined) waits.push(fired(signal, "abort", over.signal));
  if (watch !== undefined) waits.push(watch(over.signal).then(() => "ended"));
  try {
    return await Promise.race(waits);
  } finally {
    over.abort();
  }
}

async function after(milliseconds: number, over: AbortSignal): Promise<CommandEnd> {
  await sleep(milliseconds, undefined, { signal: over }).catch(() => {});
  return "timeout";
}

function fired(signal: AbortSignal, end: CommandEnd, over: AbortSignal): Promise<CommandEnd> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(end);
    signal.addEventListener("abort", () => resolve(end), { once: true, signal: over });
  });
}
