/** What is told to those who watch, from records, when these are written. A watcher must not throw, and nothing waits for it. */
import type { RolloutRecord } from "./rollout.ts";
import type { CallBegun, CallFinished, Tried } from "./session-log.ts";
import type { SessionSpec } from "./session-spec.ts";

/** A tool that the harness ran between two calls. `name`: as it was sampled. Unix milliseconds. */
export type ToolTime = { id: string; name: string; started: number; ended: number };

/** A call whose end is in the log. `tools`: those whose results it brought. */
export type EndedCall = {
  session_id: string;
  spec: SessionSpec;
  begun: CallBegun;
  tries: readonly Tried[];
  tools: readonly ToolTime[];
  outcome: Pick<CallFinished, "time" | "usage" | "finish_reason" | "policy" | "engine" | "engine_model" | "error">;
};

/** An attempt at a rollout whose record is written. */
export type EndedAttempt = {
  /** The set of a service, or the run. */
  set_id: string;
  record: RolloutRecord;
  /** Unix milliseconds: when its record was written. */
  stored: number;
};

/** A set that was asked for, or a run that is over. Unix milliseconds. */
export type WatchedSet = { set_id: string; key: string | null; harness: string | null; purpose: string; begun: number; ended: number };

export type Watcher = {
  call(call: EndedCall): void;
  attempt(attempt: EndedAttempt): void;
  set(set: WatchedSet): void;
};
