/** The rollouts and sessions of a run as `ls` and `stats` take them: figures of its index, one entry each. */
import { sumCounts } from "../../base/statistics/sum-counts.ts";
import type { IndexFile, PhaseSeconds, RecordFigures, TrajectoryFigures, VerdictFigures } from "../../rollouts/records/index.ts";

export type Entry = {
  session_id: string | null;
  rollout_id: string | null;
  attempt: number;
  member: string | null;
  task_id: string | null;
  group_id: string | null;
  sample_index: number | null;
  harness: string | null;
  /** queued, init, run, post or done of a rollout; `recorded`: a session that no verdict belongs to. */
  state: string;
  reward: number | null;
  /** The code of what failed, else why the harness stopped. */
  end: string | null;
  mask_reason: string | null;
  /** null where no trajectory is written yet. */
  turns: number | null;
  sampled_tokens: number | null;
  trainable_tokens: number | null;
  temperature: number | null;
  policies: TrajectoryFigures["policies"];
  labels: Record<string, string>;
  /** Unix time in milliseconds. */
  begun: number | null;
  seconds: number | null;
  harness_version: string | null;
  agents: string[];
  largest_prompt: number | null;
  /** Reason -> number of sampled tokens that it keeps from training. */
  excluded: Record<string, number>;
  matches: Record<string, number>;
  causes: Record<string, number>;
  /** null if it has no rollout record; so are `verdict` and `why_null`. */
  phases: PhaseSeconds | null;
  verdict: VerdictFigures | null;
  why_null: string | null;
};

/** Tells whether the rollout goes on. */
export function isOpen({ state }: Pick<Entry, "state">): boolean {
  return state !== "done" && state !== "recorded";
}

/** Every session, and every attempt that has none, in the order of the run. */
export function toEntries({ trajectories, records, sessions }: IndexFile): Entry[] {
  const recorded = new Map(records.map(({ figures }) => [attemptOf(figures), figures]));
  const told = new Set<string>();
  const written = trajectories.map(({ figures }) => {
    const key = attemptOf(figures);
    told.add(key);
    return joined(figures, recorded.get(key));
  });
  const alone = records.filter(({ figures }) => !told.has(attemptOf(figures))).map(({ figures }) => ofRecord(figures));
  return [...written, ...alone, ...sessions.flatMap(({ figures }) => (figures ? [joined(figures, undefined)] : []))];
}

function attemptOf({ rollout_id, attempt, session_id }: { rollout_id: string | null; attempt: number; session_id: string | null }): string {
  return JSON.stringify(rollout_id === null ? [session_id] : [rollout_id, attempt]);
}

function joined({ trajectory_id: _, fidelity: __, stop_reason, ...figures }: TrajectoryFigures, record: RecordFigures | undefined): Entry {
  const known = { ...figures, end: stop_reason, state: "recorded", phases: null, verdict: null, why_null: null };
  if (record === undefined) return known;
  const { state, end, begun, seconds, phases, verdict, why_null } = record;
  const harness = { harness: figures.harness ?? record.harness, harness_version: figures.harness_version ?? record.harness_version };
  return { ...known, ...harness, state, end, begun, seconds, phases, verdict, why_null };
}

function ofRecord({ has_summary: _, ...figures }: RecordFigures): Entry {
  const none = { member: null, turns: null, sampled_tokens: null, trainable_tokens: null, temperature: null, largest_prompt: null };
  return { ...none, policies: [], labels: {}, agents: [], excluded: {}, matches: {}, causes: {}, ...figures };
}

/** One entry for each rollout: its last attempt, with the sessions of a team as one; a session of no rollout is one by itself. */
export function toRollouts(entries: readonly Entry[]): Entry[] {
  return membersOf(entries).map(asOne);
}

/** The sessions of each rollout's last attempt. */
export function membersOf(entries: readonly Entry[]): Entry[][] {
  const rollouts = new Map<string, Entry[]>();
  for (const entry of entries) {
    const { rollout_id, session_id, task_id, group_id } = entry;
    const key = JSON.stringify(rollout_id === null ? [session_id] : [task_id, group_id, rollout_id]);
    const known = rollouts.get(key)?.filter(({ attempt }) => attempt >= entry.attempt) ?? [];
    rollouts.set(key, known.some(({ attempt }) => attempt > entry.attempt) ? known : [...known, entry]);
  }
  return [...rollouts.values()];
}

export function asOne(members: Entry[]): Entry {
  const [first] = members as [Entry];
  if (members.length === 1) return first;
  const sum = (name: "turns" | "sampled_tokens" | "trainable_tokens"): number | null =>
    members.reduce<number | null>((total, one) => (one[name] === null ? total : (total ?? 0) + one[name]), null);
  const reward = members.find((one) => one.reward !== null)?.reward ?? null;
  const counts = { turns: sum("turns"), sampled_tokens: sum("sampled_tokens"), trainable_tokens: sum("trainable_tokens") };
  const largest = members.flatMap(({ largest_prompt }) => largest_prompt ?? []);
  const maps = {
    excluded: sumCounts(members.map(({ excluded }) => excluded)),
    matches: sumCounts(members.map(({ matches }) => matches)),
    causes: sumCounts(members.map(({ causes }) => causes)),
  };
  const agents = [...new Set(members.flatMap((one) => one.agents))];
  return { ...first, member: null, reward, ...counts, ...maps, agents, largest_prompt: largest.length === 0 ? null : Math.max(...largest) };
}

/** Returns why a rollout has no reward: its state if it is not over, else its mask reason, its verdict's status, or its end. */
export function nullReason(entry: Entry): string {
  const { mask_reason, end, state, verdict } = entry;
  if (isOpen(entry)) return state;
  return mask_reason ?? (verdict === null || verdict.status === "graded" ? null : verdict.status) ?? end ?? state;
}
