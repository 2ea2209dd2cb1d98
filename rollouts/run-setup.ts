/** What all rollouts on this machine share. Nothing here changes while they go on. */
import type { AlidadeError } from "../base/errors.ts";
import type { LastGuard } from "../base/host/deaths/last-guard.ts";
import type { RolloutRecord } from "../base/schema/rollout.ts";
import type { Trajectory } from "../base/schema/trajectory.ts";
import type { Watcher } from "../base/schema/watcher.ts";
import type { Network } from "../base/wire/network.ts";
import type { Grader } from "../graders/index.ts";
import type { HarnessProxy } from "../proxy/index.ts";
import type { DiskBudget, SandboxBackend, WarmPool } from "../sandboxes/index.ts";
import type { ForwardBounds } from "../sandboxes/network/index.ts";
import type { PublicGrant } from "./accepted/public-network.ts";
import type { RunFolder } from "./records/run-folder.ts";
import type { Slots } from "./slots.ts";
import type { RolloutTeacher } from "./teacher/rollout-teacher.ts";

export type RunSetup = {
  /** Label of every sandbox; it tells a reaper the owner. */
  run_id: string;
  /** This process (`currentOwner()`), for the reaper too. */
  owner: string;
  proxy: HarnessProxy;
  backend: SandboxBackend;
  /** Hands out the backend's sandboxes, made ahead; each is made when it is asked for where left out. */
  warm?: WarmPool;
  /** Ends one rollout in the place of the process; an exception that no step awaits ends the process where left out. */
  guard?: Pick<LastGuard, "claim" | "run" | "step" | "aside" | "isSuspect" | "takeTurn" | "crashFile" | "blameless">;
  /** What is left of the disk; nothing is looked at where left out. */
  disk?: DiskBudget;
  /** Those that a task may name; the built-in ones where left out. */
  graders?: readonly Grader[];
  /** What becomes of rollouts that ran when a process died: they go on by a replay of their record, or begin anew; `replay` where left out. */
  resume?: "replay" | "again";
  /** Share of a task's rollouts without a reward above which it is set aside; 0.5 where left out. */
  max_null_share?: number;
  /** What the operator lets tasks reach; where left out named hosts, and never the whole public network. */
  network?: NetworkOptions;
  /** Scores each rollout that is no evaluation, before its trajectory is kept. Absent: no rollout is scored. */
  teacher?: Pick<RolloutTeacher, "teach">;
  folder: RecordPlace;
  slots: Slots;
  /** The time between two attempts; by the clock where left out. Rejects when the signal fires. */
  pause?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  onProgress: (event: ProgressEvent) => void;
  /** Is told of each attempt whose record is written. */
  watcher?: Pick<Watcher, "attempt"> | undefined;
  /** Gets the error of each task whose sandbox cannot be; a note where left out. The run goes on without it. */
  onLeftOut?: (error: AlidadeError) => void;
};

/** Where records and trajectories go: a trajectory, with the record that says its attempt is over, before that record. */
export type RecordPlace = Pick<RunFolder, "record" | "blobs"> & {
  keep(trajectory: Trajectory, record: RolloutRecord): Promise<void>;
};

export type NetworkOptions = PublicGrant & {
  bounds?: Partial<ForwardBounds>;
  /** How names are resolved and which addresses are connected to; the public internet where left out. */
  network?: Network;
};

export type ProgressEvent =
  /** Once, before the first rollout: those of the run, and those of them that an earlier process finished. */
  | { type: "planned"; total: number; over: number }
  | {
      type: "state";
      set_id: string;
      rollout_id: string;
      task_id: string;
      sample_index: number;
      attempt: number;
      state: "init" | "run" | "post" | "teach";
    }
  | { type: "done"; record: RolloutRecord }
  | { type: "note"; text: string };
