/** A node may start before its database and its service: then it waits for them. */
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError, messageOf } from "../../../base/errors.ts";

const firstPauseMs = 500;
const longestPauseMs = 5_000;

/** Codes of Node and of Postgres for what is not there yet: no route, no listener, no name, starting or stopping. */
const awayCodes: ReadonlySet<string> = new Set(
  "ECONNREFUSED ECONNRESET ENOTFOUND EAI_AGAIN ETIMEDOUT EHOSTUNREACH ENETUNREACH EPIPE 57P01 57P02 57P03 53300".split(" "),
);

export type AwaitOptions = { seconds: number; note: (text: string) => void; signal: AbortSignal };

/**
 * What `open` gives, as soon as what it needs is there; `note` is told the first reason. Throws `open`'s own error where waiting
 * mends nothing, or after so many seconds, and the signal's reason.
 */
export async function whenThere<T>(open: () => Promise<T>, { seconds, note, signal }: AwaitOptions): Promise<T> {
  const until = performance.now() + seconds * 1000;
  for (let pause = firstPauseMs; ; pause = Math.min(2 * pause, longestPauseMs)) {
    try {
      return await open();
    } catch (error) {
      if (!isAway(error) || performance.now() > until) throw error;
      if (pause === firstPauseMs) note(`waiting up to ${seconds} s for what is not there yet: ${messageOf(error)}`);
      await sleep(pause, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }
}

/** Whether it is not there yet: by its code, by that of its cause, or by those of the addresses that were tried. */
function isAway(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof AlidadeError && error.code === "not_found") return true;
  const { code } = error as Error & { code?: unknown };
  const tried = error instanceof AggregateError ? error.errors : [];
  return (typeof code === "string" && awayCodes.has(code)) || isAway(error.cause) || tried.some(isAway);
}
