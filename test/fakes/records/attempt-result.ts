/** What a node says of an attempt that earned a reward. */
import type { AttemptResult } from "../../../service/ledger/index.ts";

export function attemptResult(more: Partial<AttemptResult> = {}): AttemptResult {
  return {
    state: "completed",
    reward: 1,
    components: {},
    stop_reason: "exited",
    mask_reason: null,
    error: null,
    session_id: "ses1",
    policies: [],
    oldest_step: null,
    newest_step: null,
    forked_from: null,
    turns: 1,
    sampled_tokens: 3,
    trainable_tokens: 3,
    figures: null,
    resume: null,
    user: null,
    times: {},
    payload: null,
    ...more,
  };
}
