import { between, phaseSeconds } from "../../rollouts/records/index.ts";
import type { ResultRow, SetSpec } from "../../service/ledger/index.ts";
import type { Entry } from "../run/entries.ts";

/**
 * Makes a row of pages out of a result. The ledger holds no words of the verdict and no agents: a rollout's own page has
 * them. The trainer's key of the group stands among the labels, so that a filter finds it.
 */
export function toEntry(row: ResultRow, { harness, labels }: Pick<SetSpec, "harness" | "labels">): Entry {
  const { session_id, rollout_id, attempt, task_id, group_id, reward, mask_reason, policies, times, figures, error } = row;
  const { turns, sampled_tokens, trainable_tokens } = row;
  return {
    ...{ session_id, rollout_id, attempt, task_id, group_id, harness, reward, mask_reason, policies },
    ...{ turns, sampled_tokens, trainable_tokens },
    member: null,
    sample_index: row.index,
    state: "done",
    end: error?.code ?? row.stop_reason,
    temperature: null,
    labels: { ...labels, group_key: row.group_key },
    begun: times.queued ?? null,
    seconds: between(times.run, times.teach ?? times.done),
    harness_version: null,
    agents: [],
    largest_prompt: null,
    excluded: figures?.excluded ?? withoutReason(row),
    matches: figures?.edges ?? {},
    causes: figures?.causes ?? {},
    phases: phaseSeconds(times),
    verdict: null,
    why_null: reward === null ? (error?.message ?? null) : null,
  };
}

/** Rows of an earlier version count untrained tokens without reasons. */
function withoutReason({ sampled_tokens, trainable_tokens }: ResultRow): Entry["excluded"] {
  const left = sampled_tokens - trainable_tokens;
  return left > 0 ? { reason_not_recorded: left } : {};
}
