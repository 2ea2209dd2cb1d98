/** Keeps the new verdicts of a run that is graded again in its `regrade.jsonl`, until they are complete. */
import { join } from "node:path";
import { z } from "zod";
import { Time } from "../../base/schema/log/time.ts";
import { Verdict } from "../../base/schema/rollout.ts";
import { Journal } from "./journal.ts";

const NewVerdict = z.strictObject({
  rollout_id: z.string(),
  attempt: z.number().int(),
  /** The work and the task by which it was graded: another task is another grading. */
  work_sha256: z.string(),
  task_hash: z.string(),
  verdict: Verdict,
  time: Time,
});
export type NewVerdict = z.infer<typeof NewVerdict>;

export function openRegradeJournal(folder: string): Promise<Journal<NewVerdict>> {
  return Journal.open<NewVerdict>(join(folder, "regrade.jsonl"), { parse: (value) => NewVerdict.parse(value), keyOf: gradingKey });
}

export function gradingKey({ rollout_id, attempt, work_sha256, task_hash }: Omit<NewVerdict, "verdict" | "time">): string {
  return JSON.stringify([rollout_id, attempt, work_sha256, task_hash]);
}
