/** Asks a teacher to score one trajectory, for `alidade score` and for a rollout that was just graded. */
import type { Teacher, Trajectory } from "../../base/schema/trajectory.ts";
import { type AskTeacher, scoreNodes } from "../../reconstruct/index.ts";
import type { Scored, TeacherName } from "../records/score-journal.ts";

export type AskableTeacher = TeacherName & {
  /** Hash of its tokenizer; null: unknown. */
  tokenizer: string | null;
  ask(trajectory: Trajectory, signal: AbortSignal): AskTeacher;
};

/** Returns a sentence if the engine answers without any logprob. Throws what its calls throw. */
export async function askTeacher(
  teacher: AskableTeacher,
  tokenizer: Teacher["tokenizer"],
  trajectory: Trajectory,
  signal: AbortSignal,
): Promise<Scored | string> {
  const scores = await scoreNodes(trajectory, teacher.ask(trajectory, signal));
  signal.throwIfAborted();
  const asked = [...scores.values()].filter(({ reason }) => reason === null || reason === "no_logprob");
  if (asked.length > 0 && asked.every(({ logprobs }) => logprobs.every((one) => one === null)))
    return `the engine at ${teacher.url} answered without logprobs of the prompt`;
  return { teacher: toTeacher(teacher, tokenizer), scores };
}

/** The teacher, as it stands in a trajectory. */
export function toTeacher({ engine, url, model, weight_version, top_k }: TeacherName, tokenizer: Teacher["tokenizer"]): Teacher {
  return { engine, url, model, weight_version, tokenizer, ...(top_k !== undefined && { top_k }), scored: Date.now() };
}
