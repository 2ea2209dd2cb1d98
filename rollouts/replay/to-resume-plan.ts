/** How a rollout goes on whose process died: by a replay of its session's log, or anew where that cannot be. */
import { messageOf } from "../../base/errors.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import type { Task } from "../../base/schema/task.ts";
import type { Harness } from "../../harnesses/index.ts";
import { countFinished, type SessionRecording, toRecording } from "../../proxy/index.ts";
import type { Store } from "../../proxy/store/index.ts";
import { usesNetwork } from "../../sandboxes/index.ts";
import type { ResumePlan } from "../rollout-plan.ts";
import { whyNotReplayed } from "./why-not-replayed.ts";

export type DeadAttempt = {
  /** The last record of it. */
  record: Pick<RolloutRecord, "session_id" | "harness" | "harness_version" | "task_hash" | "resume">;
  task: Task;
  task_hash: string;
  harness: Pick<Harness, "name" | "version">;
  wanted: "replay" | "again";
};

/** null: none of its calls had finished, so nothing is lost. */
export async function toResumePlan(store: Pick<Store, "read">, dead: DeadAttempt): Promise<ResumePlan | null> {
  const { session_id, resume } = dead.record;
  const { again_tokens, why: whyBefore } = { again_tokens: 0, why: null, ...resume };
  const wasAnew = again_tokens > 0 || whyBefore !== null;
  const nothing: ResumePlan | null = wasAnew ? { how: "again", again_tokens, why: whyBefore ?? "it was begun anew before" } : null;
  if (session_id === null) return nothing;
  let recording: SessionRecording;
  try {
    const lines = await store.read(session_id);
    if (lines.length === 0) return nothing;
    recording = toRecording(session_id, lines);
  } catch (error) {
    return { how: "again", again_tokens, why: messageOf(error) };
  }
  const { calls, sampled_tokens } = countFinished(recording);
  if (calls === 0) return nothing;
  const why = whyAgain(dead);
  return why === null
    ? {
        how: "replay",
        session_id,
        sampled_tokens,
        again_tokens,
        why: whyBefore,
        ...(resume?.parked_from && { parked_from: resume.parked_from }),
      }
    : { how: "again", again_tokens: again_tokens + sampled_tokens, why };
}

/** null: it can go on where it was. */
function whyAgain({ record, task, task_hash, harness, wanted }: DeadAttempt): string | null {
  if (wanted === "again") return "the configuration says `resume: again`";
  if (record.task_hash !== task_hash) return "the task is another one than when it began";
  if (record.harness !== harness.name || record.harness_version !== harness.version)
    return `it was begun by ${record.harness} ${record.harness_version ?? ""}, and this is ${harness.name} ${harness.version ?? ""}`;
  const not = whyNotReplayed(task);
  if (not !== null) return `its task ${not}`;
  if (!(task.environment.repeatable ?? !usesNetwork(task.environment))) return "its environment is not repeatable (environment.repeatable)";
  return null;
}
