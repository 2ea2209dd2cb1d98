/** What every rollout of a run shares. Made once by run-tasks.ts; nothing here changes while rollouts go on. */
import type { Harness } from "../harnesses/harness.ts";
import type { Pack } from "../harnesses/pack.ts";
import type { HarnessProxy } from "../proxy/index.ts";
import type { SandboxBackend } from "../sandboxes/sandbox.ts";
import type { Sampling } from "../schema/message.ts";
import type { SessionOptions } from "../schema/session-spec.ts";
import type { Task } from "../schema/task.ts";
import type { RunFolder } from "./run-folder.ts";
import type { Slots } from "./slots.ts";

export type RunSetup = {
  run_id: string;
  /** `pid:start_ticks` of this process, for the reaper. */
  owner: string;
  proxy: HarnessProxy;
  backend: SandboxBackend;
  harness: Harness;
  /** null: the harness needs nothing installed. */
  pack: Pack | null;
  /** What is chosen of each session; what is left out is its default. */
  session: Partial<SessionOptions>;
  samplingOf?: (task: Task, sampleIndex: number) => Sampling | Sampling[];
  samples: number;
  /** Attempts after an infrastructure failure, beside the first. */
  retries: number;
  /** The time between two of them. Rejects when the signal fires. */
  pause: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  folder: RunFolder;
  slots: Slots;
  onProgress: (event: ProgressEvent) => void;
};

/** One rollout to be made: the same one in every attempt. */
export type RolloutPlan = {
  rollout_id: string;
  attempt: number;
  task: Task;
  task_hash: string;
  group_id: string;
  sample_index: number;
};

export type ProgressEvent =
  | { type: "state"; rollout_id: string; task_id: string; sample_index: number; attempt: number; state: "init" | "run" | "post" }
  | { type: "done"; record: import("../schema/rollout.ts").RolloutRecord }
  | { type: "note"; text: string };
