/** Removes what dead processes left on this machine: when a run begins, and again and again while it goes on. */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../errors.ts";
import type { ReapOptions } from "../host/reap.ts";
import type { RunSetup } from "./run-setup.ts";

type Reaping = Pick<RunSetup, "backend" | "onProgress">;

/** A look costs the engine two lists. */
const everyMs = 60_000;

/** Until the scope ends. What cannot be removed is said once. */
export function reapMeanwhile(setup: Reaping, every = everyMs): AsyncDisposable {
  const stop = new AbortController();
  const said = new Set<string>();
  const reaping = (async () => {
    while (!stop.signal.aborted) {
      await clearAway(setup, { min_age_ms: everyMs }, stop.signal, said);
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

/** Says what was removed, and what could not be. */
export async function clearAway({ backend, onProgress }: Reaping, options: ReapOptions, signal: AbortSignal, said = new Set<string>()) {
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
