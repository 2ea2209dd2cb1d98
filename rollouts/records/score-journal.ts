/**
 * The scores of a run that a teacher is at, in a file of the run's folder until they are part of its trajectories. Each teacher has
 * a file of its own (`score-<hash>.jsonl`), so that one that was broken off goes on where it ended, whatever scored meanwhile.
 */
import { join } from "node:path";
import { z } from "zod";
import { hashOf } from "../../base/schema/ids.ts";
import { Teacher, TeacherScore, type Trajectory } from "../../base/schema/trajectory.ts";
import { Journal } from "./journal.ts";

const Entry = z.strictObject({ trajectory_id: z.string(), teacher: Teacher, scores: z.array(z.tuple([z.string(), TeacherScore])) });

export type Scored = { teacher: Teacher; scores: Map<string, TeacherScore> };

/** What makes two teachers one: the same weights at the same address, as far as is known. */
export type TeacherName = Pick<Teacher, "engine" | "url" | "model" | "weight_version" | "top_k">;

/** Has the kept one said all that is asked now? */
export function hasScored(kept: TeacherName, asked: TeacherName): boolean {
  return keyOf({ ...kept, top_k: 1 }) === keyOf({ ...asked, top_k: 1 }) && (kept.top_k ?? 0) >= (asked.top_k ?? 0);
}

export type ScoreJournal = Journal<z.infer<typeof Entry>>;

export function openScoreJournal(folder: string, teacher: TeacherName): Promise<ScoreJournal> {
  const file = join(folder, `score-${hashOf(keyOf(teacher)).slice(0, 12)}.jsonl`);
  return Journal.open(file, { parse: (value) => Entry.parse(value), keyOf: ({ trajectory_id }) => trajectory_id });
}

/** Returns the scores that this process or an earlier one got; null: none that fit the trajectory's nodes. */
export async function readScores(
  journal: ScoreJournal,
  { trajectory_id, nodes }: Pick<Trajectory, "trajectory_id" | "nodes">,
): Promise<Scored | null> {
  const entry = await journal.read(trajectory_id);
  if (entry === null) return null;
  const lengths = new Map(nodes.map(({ node_id, token_ids }) => [node_id, token_ids.length]));
  const fits = entry.scores.every(([id, { logprobs }]) => lengths.get(id) === logprobs.length);
  return fits ? { teacher: entry.teacher, scores: new Map(entry.scores) } : null;
}

function keyOf({ engine, url, model, weight_version, top_k = 0 }: TeacherName): string {
  return JSON.stringify([engine, url, model, weight_version, top_k]);
}
