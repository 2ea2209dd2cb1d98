/** A rollout that is not made, because the process died of it: its end is a record like any other. */
import { AlidadeError } from "../../base/errors.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { toErrorRecord } from "../../proxy/index.ts";
import { plainRules } from "../../sandboxes/network/index.ts";
import { newAttempt, recordOf } from "../records/attempt-record.ts";
import type { RolloutPlan } from "../rollout-plan.ts";
import type { RunSetup } from "../run-setup.ts";

/** `why`: what the guard says of it. */
export async function setAside(
  { folder, onProgress }: Pick<RunSetup, "folder" | "onProgress">,
  plan: RolloutPlan,
  why: string,
): Promise<RolloutRecord> {
  const error = new AlidadeError("rollout_set_aside", `${why}. It is set aside; \`--resume <run> --retry-set-aside\` runs it again`);
  const now = Date.now();
  const attempt = newAttempt(plainRules(), now);
  attempt.error = toErrorRecord(error);
  attempt.times.done = now;
  const record = recordOf(plan, attempt, "done", null);
  await folder.record(record);
  onProgress({ type: "done", record });
  return record;
}
