/** Removes what dead processes left on this machine, and images over their budget: when a run begins, and again and again. */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../base/errors.ts";
import type { ReapOptions } from "../base/host/reap.ts";
import type { RunSetup } from "./run-setup.ts";

type Reaping = Pick<RunSetup, "backend" | "onProgress" | "disk">;

/** A look costs the engine two lists. */
const everyMs = 60_000;

/**
 * While rollouts are made under `run_id`, until the scope ends. `hasDied`: a process was at work under it before. What that left goes
 * first, for the calls of its sandboxes would reach no proxy; and once more at the end, for what a container engine was still making
 * when its client was killed is there by then.
 */
export async function reapAtWork(
  setup: Reaping & Pick<RunSetup, "run_id">,
  signal: AbortSignal,
  hasDied: boolean,
): Promise<AsyncDisposable> {
  const clearOwn = async (): Promise<void> => {
    if (hasDied) await clearAway(setup, { run: setup.run_id }, signal);
  };
  await clearOwn();
  const reaper = reapMeanwhile(setup);
  return {
    [Symbol.asyncDispose]: async () => {
      await reaper[Symbol.asyncDispose]();
      if (!signal.aborted) await clearOwn();
    },
  };
}

/** Until the scope ends. What cannot be removed is said once. */
export function reapMeanwhile(setup: Reaping, every = everyMs): AsyncDisposable {
  const stop = new AbortController();
  const said = new Set<string>();
  const reaping = (async () => {
    while (!stop.signal.aborted) {
      await clearAway(setup, { min_age_ms: everyMs }, stop.signal, said);
      await trimImages(setup, stop.signal, said);
      await sleep(every, undefined, { signal: stop.signal, ref: false }).catch(() => {});
    }
  })();
  return {
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await reaping;
    },
  };
}

async function trimImages({ disk, onProgress }: Reaping, signal: AbortSignal, said: Set<string>): Promise<void> {
  const { removed, problems } = (await disk?.trim(signal)) ?? { removed: [], problems: [] };
  const fresh = problems.filter((text) => !said.has(text));
  for (const text of fresh) said.add(text);
  for (const text of [...removed.map((what) => `removed ${what}`), ...fresh]) onProgress({ type: "note", text });
}

/** Says what was removed, and what could not be. */
async function clearAway({ backend, onProgress }: Reaping, options: ReapOptions, signal: AbortSignal, said = new Set<string>()) {
  const note = (text: string): void => onProgress({ type: "note", text });
  const noteOnce = (text: string): void => {
    if (!said.has(text)) note(text);
    said.add(text);
  };
  try {
    const { removed, failed } = await backend.reap(options, signal);
    for (const text of removed) note(`removed ${text}`);
    for (const text of failed) noteOnce(`could not remove ${text}`);
  } catch (error) {
    if (!signal.aborted) noteOnce(`what was left behind could not be removed: ${messageOf(error)}`);
  }
}
