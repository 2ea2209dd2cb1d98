/**
 * Scores what a run sampled at another engine, a teacher, without its agents: the last attempt of each rollout, path by path. The
 * scores become part of the trajectories when all are there, as a new revision of each rollout; nothing that was recorded changes.
 */
import { join } from "node:path";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import type { Teacher, Trajectory } from "../../base/schema/trajectory.ts";
import { Appender } from "../../proxy/store/index.ts";
import { type Teaching, teachingOf, wasAnswered, withTeacher } from "../../reconstruct/index.ts";
import { lockFolder } from "../records/folder-lock.ts";
import { rewriteTrajectories } from "../records/rewrite-trajectories.ts";
import { attemptKey, eachTrajectory, type OnDamage } from "../records/run-records.ts";
import { hasScored, openScoreJournal, readScores, type Scored, type ScoreJournal } from "../records/score-journal.ts";
import { readWanted, type WantedAttempts, whyNoTrajectory, workThrough } from "../records/wanted-attempts.ts";
import { type AskableTeacher, askTeacher } from "./ask-teacher.ts";
import { compareTokenizers } from "./compare-tokenizers.ts";

export type ScoreSetup = {
  /** The run's folder. No other process may be at work in it. */
  path: string;
  teacher: AskableTeacher;
  /** Rollouts at once. */
  atOnce: number;
  isWanted: (record: RolloutRecord) => boolean;
  /** Told before the first is scored. `unknown`: rollouts whose tokenizer cannot be compared. */
  onBegin: (begun: { rollouts: number; again: number; unknown: number; replaced: readonly string[] }) => void;
  onScored: (scored: ScoredRollout) => void;
  onDamage: OnDamage;
};

type RolloutNames = Pick<RolloutRecord, "rollout_id" | "task_id" | "sample_index" | "attempt">;

export type ScoredRollout = RolloutNames &
  Omit<Teaching, "compared_tokens" | "gap"> & {
    revision: number;
    /** Recorded less teacher's logprob, mean over the tokens that have both (nats); null: none has. */
    mean_gap: number | null;
  };

/** Has no new scores, for the reason. */
export type NotScored = RolloutNames & { reason: string };

/** `already`: those that this teacher had scored in an earlier call, which are left as they are. */
export type Scoring = { scored: ScoredRollout[]; already: RolloutNames[]; left: NotScored[] };

/** Throws `config_invalid` before anything is asked where the teacher has another tokenizer than what sampled. */
export async function score(setup: ScoreSetup, signal: AbortSignal): Promise<Scoring> {
  await using _lock = await lockFolder(setup.path);
  const wanted = await readWanted(setup.path, setup.isWanted, setup.onDamage);
  await using journal = await openScoreJournal(setup.path, setup.teacher);
  const plan = await planScores(setup, wanted, journal);
  setup.onBegin({ rollouts: plan.open.size, again: plan.again, unknown: plan.unknown.size, replaced: [...plan.replaced] });
  const scored = await scoreAll(setup, plan, journal, signal);
  await keep(setup.path, scored.records, journal);
  await journal.remove();
  return { scored: scored.scored, already: plan.already.map(namesOf), left: [...plan.left, ...scored.left] };
}

type ScorePlan = {
  /** Attempt -> record of what is to be scored. */
  open: Map<string, RolloutRecord>;
  already: RolloutRecord[];
  left: NotScored[];
  /** How many of the open ones an earlier process has scored. */
  again: number;
  /** Attempts of which the tokenizer that sampled, or the teacher's, is not known. */
  unknown: Set<string>;
  /** Models whose scores go. */
  replaced: Set<string>;
};

/** Looks at all that is wanted first: a teacher that cannot read one rollout's ids must not score the others for hours. */
async function planScores(setup: ScoreSetup, wanted: WantedAttempts, journal: ScoreJournal): Promise<ScorePlan> {
  const plan: ScorePlan = { open: new Map(), already: [], left: [], again: 0, unknown: new Set(), replaced: new Set() };
  const seen = new Set<string>();
  for await (const trajectory of eachTrajectory(setup.path, setup.onDamage)) {
    const key = attemptKey(trajectory);
    const record = wanted.get(key);
    if (record === undefined || seen.has(key)) continue;
    seen.add(key);
    if (trajectory.teacher !== undefined && hasScored(trajectory.teacher, setup.teacher) && wasAnswered(trajectory)) {
      plan.already.push(record);
      continue;
    }
    if (assertTokenizer(setup.teacher, trajectory, record) === "unknown") plan.unknown.add(key);
    if (trajectory.teacher !== undefined && wasAnswered(trajectory)) plan.replaced.add(trajectory.teacher.model);
    if (journal.has(trajectory.trajectory_id)) plan.again++;
    plan.open.set(key, record);
  }
  for (const [key, record] of wanted) if (!seen.has(key)) plan.left.push({ ...namesOf(record), reason: whyNoTrajectory(record) });
  return plan;
}

/** Throws `config_invalid` if the tokenizers are known to differ. */
function assertTokenizer(teacher: AskableTeacher, trajectory: Trajectory, record: RolloutRecord): "same" | "unknown" {
  const { tokenizer, sampled_by } = compareTokenizers(teacher.tokenizer, trajectory);
  if (tokenizer !== "other") return tokenizer;
  throw new AlidadeError(
    "config_invalid",
    `${teacher.model} at ${teacher.url} has another tokenizer than ${sampled_by ?? "the model"} that sampled ${nameOf(record)}, so the same ids are other words to it: nothing was scored; take a teacher of the policy's own family`,
    { param: "engine" },
  );
}

/** `records`: attempt -> its record, and when it was scored. */
type AllScores = Pick<Scoring, "scored" | "left"> & { records: Map<string, { record: RolloutRecord; time: number }> };

async function scoreAll(setup: ScoreSetup, plan: ScorePlan, journal: ScoreJournal, signal: AbortSignal): Promise<AllScores> {
  const found: AllScores = { scored: [], left: [], records: new Map() };
  const one = async (record: RolloutRecord, trajectory: Trajectory): Promise<void> => {
    const tokenizer = plan.unknown.has(attemptKey(record)) ? "unknown" : "same";
    const scores = await scoresOf(setup, tokenizer, journal, trajectory, signal);
    if (typeof scores === "string") {
      found.left.push({ ...namesOf(record), reason: scores });
      return;
    }
    const scored = toScored(record, withTeacher(trajectory, scores.teacher, scores.scores), scores.teacher.scored);
    found.records.set(attemptKey(record), { record, time: scores.teacher.scored });
    found.scored.push(scored);
    setup.onScored(scored);
  };
  // Damage was already reported when the plan was made.
  await workThrough({ ...setup, onDamage: () => undefined }, plan.open, one, signal);
  return found;
}

/** The scores of an earlier process, or those asked for now; a sentence where the engine refuses this rollout. */
async function scoresOf(
  { teacher }: ScoreSetup,
  tokenizer: Teacher["tokenizer"],
  journal: ScoreJournal,
  trajectory: Trajectory,
  signal: AbortSignal,
): Promise<Scored | string> {
  const earlier = await readScores(journal, trajectory);
  if (earlier !== null) return earlier;
  try {
    const made = await askTeacher(teacher, tokenizer, trajectory, signal);
    if (typeof made === "string") return made;
    await journal.add({ trajectory_id: trajectory.trajectory_id, teacher: made.teacher, scores: [...made.scores] });
    return made;
  } catch (error) {
    signal.throwIfAborted();
    const failure = asAlidadeError(error, "engine_error");
    // What befalls every rollout ends the scoring; the same command goes on.
    if (failure.code === "engine_unreachable" || failure.code === "unauthorized" || failure.code.startsWith("store_")) throw failure;
    return failure.message;
  }
}

/** Records first: a process that dies before the trajectories finds all scores in the journal and does both again. */
async function keep(path: string, scored: AllScores["records"], journal: ScoreJournal): Promise<void> {
  if (scored.size === 0) return;
  {
    await using records = await Appender.open(join(path, "rollouts.jsonl"));
    for (const { record, time } of scored.values()) {
      if (isKept(record, time)) continue;
      const next = { ...record, revision: record.revision + 1, times: { ...record.times, scored: time } };
      await records.append(`${JSON.stringify(next satisfies RolloutRecord)}\n`);
    }
  }
  await rewriteTrajectories(path, async (trajectory) => {
    if (!scored.has(attemptKey(trajectory))) return trajectory;
    const found = await readScores(journal, trajectory);
    return found === null ? trajectory : withTeacher(trajectory, found.teacher, found.scores);
  });
}

/** Was it kept by a process that died between the records and the end? */
function isKept({ times }: RolloutRecord, time: number): boolean {
  return times.scored === time;
}

function toScored(record: RolloutRecord, trajectory: Pick<Trajectory, "nodes">, time: number): ScoredRollout {
  const { compared_tokens, gap, ...teaching } = teachingOf(trajectory);
  return {
    ...namesOf(record),
    ...teaching,
    revision: isKept(record, time) ? record.revision : record.revision + 1,
    mean_gap: compared_tokens === 0 ? null : gap / compared_tokens,
  };
}

function namesOf({ rollout_id, task_id, sample_index, attempt }: RolloutRecord): RolloutNames {
  return { rollout_id, task_id, sample_index, attempt };
}

function nameOf({ task_id, sample_index }: RolloutRecord): string {
  return `${task_id}/${sample_index}`;
}
