/**
 * `index.json` beside a run's records: what `ls`, `stats`, `fidelity`, `view` and `show` ask of every rollout, and where its
 * lines lie, so that they read a kilobyte a rollout and not its tokens. It is a cache that the first reader writes and later ones
 * bring up to date (update-index.ts): without it, or with one that does not fit the records, the answer is the same and
 * takes longer. Nothing here loads the schemas, for that would take longer than the answer.
 */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Policy } from "../../base/schema/policy.ts";
import type { LinePlace } from "../../proxy/store/index.ts";
import type { AttemptFidelity } from "./attempt-fidelity.ts";

/** Raised when the rows change, so that a file of an older version is made anew. */
export const indexLayout = 10;

/** A trajectory without its calls, messages and tokens. */
export type TrajectoryFigures = {
  session_id: string;
  trajectory_id: string;
  rollout_id: string | null;
  attempt: number;
  member: string | null;
  task_id: string | null;
  group_id: string | null;
  sample_index: number | null;
  harness: string | null;
  reward: number | null;
  stop_reason: string | null;
  mask_reason: string | null;
  turns: number;
  sampled_tokens: number;
  trainable_tokens: number;
  /** The one that all calls sampled at; null where they differ, or one has none. */
  temperature: number | null;
  /** The session's own policies, in the order in which they sampled. */
  policies: Policy[];
  labels: Record<string, string>;
  /** Unix time in milliseconds, and the seconds to the last answer; null without a call. */
  begun: number | null;
  seconds: number | null;
  harness_version: string | null;
  /** Names of its agents, at most `mostAgents`. */
  agents: string[];
  /** Tokens of the longest prompt; null where no call has ids. */
  largest_prompt: number | null;
  /** Reason -> sampled tokens that are not trained for it. */
  excluded: Record<string, number>;
  /** Match of the edge -> calls; cause of a branch -> calls. */
  matches: Record<string, number>;
  causes: Record<string, number>;
  fidelity: AttemptFidelity;
};

/** Sub-agents can be hundreds, and a row is held in memory for each rollout. */
export const mostAgents = 8;

/** A rollout's record (base/schema/rollout.ts) without its evidence and output. */
export type RecordFigures = {
  rollout_id: string;
  attempt: number;
  session_id: string | null;
  task_id: string;
  group_id: string;
  sample_index: number;
  harness: string;
  state: string;
  reward: number | null;
  /** The code of what failed, else why the harness stopped. */
  end: string | null;
  mask_reason: string | null;
  begun: number | null;
  /** The harness and its grading. */
  seconds: number | null;
  phases: PhaseSeconds;
  harness_version: string | null;
  verdict: VerdictFigures | null;
  /** Why there is no reward, in the words of what failed, bounded; null where there is one, or nothing failed. */
  why_null: string | null;
  /** Whether a trajectory was made of it. */
  has_summary: boolean;
};

/** Seconds from one step of a rollout to the next; null where it did not come so far. */
export type PhaseSeconds = Record<(typeof phaseNames)[number], number | null>;

/** In their order. `teach`: the teacher's time, if the run or the service has a teacher. */
export const phaseNames = ["queue", "init", "run", "grade", "teach"] as const;

/** What a verdict says in a line. Counts are null where the grader counts no tests. */
export type VerdictFigures = {
  status: string;
  required: number | null;
  failed_count: number | null;
  /** The first three tests that failed, each name bounded. */
  failed: string[];
};

/** A file as it was read, to tell whether it only grew. */
export type SeenFile = {
  inode: number;
  bytes: number;
  changed: number;
  /** The last whole line, and its hash. */
  last: LinePlace;
  last_hash: string;
};

/** A log that no trajectory and no record stands for; its damage where it cannot be read. */
export type LooseSession = {
  session_id: string;
  bytes: number;
  changed: number;
  figures: TrajectoryFigures | null;
  damage: string | null;
  /** Unix time in milliseconds; null where the log does not say it. */
  opened: number | null;
  /** Whether it is one to count: it has a call, or a team's reward. */
  tells: boolean;
};

export type IndexFile = {
  layout: number;
  /** null where there is no such file. */
  files: { trajectories: SeenFile | null; rollouts: SeenFile | null };
  trajectories: { place: LinePlace; figures: TrajectoryFigures }[];
  /** The last line of each attempt. */
  records: { place: LinePlace; figures: RecordFigures }[];
  sessions: LooseSession[];
  /** A sentence for each line that cannot be read. */
  damaged: { trajectories: string[]; rollouts: string[] };
};

export const indexName = "index.json";

export const indexedFiles = { trajectories: "trajectories.jsonl", rollouts: "rollouts.jsonl" } as const;

export function isSame(seen: SeenFile | null, now: { ino: number; size: number; mtimeMs: number } | null): boolean {
  if (seen === null || now === null) return seen === now;
  return seen.inode === now.ino && seen.bytes === now.size && seen.changed === now.mtimeMs;
}

/** Logs of sessions that neither a trajectory nor a record tells of. */
export async function looseSessions(
  folder: string,
  { trajectories, records }: Pick<IndexFile, "trajectories" | "records">,
): Promise<string[]> {
  // Without lists of all rows: this is asked for each page.
  const told = new Set<string | null>();
  for (const { figures } of trajectories) told.add(figures.session_id);
  for (const { figures } of records) told.add(figures.session_id);
  const names = await readdir(join(folder, "sessions")).catch((): string[] => []);
  return names.flatMap((name) => (logName.test(name) && !told.has(name.slice(0, -6)) ? [name.slice(0, -6)] : [])).toSorted();
}

/** As proxy/store/disk.ts has it. */
const logName = /^[A-Za-z0-9_-]{1,80}\.jsonl$/;
