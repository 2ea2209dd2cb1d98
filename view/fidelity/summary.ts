/** What the trajectories of a run come to: where the sampled tokens went, why contexts part, and what that costs. */

import type { CallRecord, EdgeCause, Trajectory } from "../../base/schema/trajectory.ts";
import { type DifferentPrompts, GroupPrompts } from "../../exporters/index.ts";
import {
  addAccounts,
  addOmitted,
  rowInflationOf,
  type SelectOptions,
  selectRows,
  type TokenAccount,
  untrainedByAgent,
} from "../../reconstruct/index.ts";
import { type AttemptEnd, type AttemptTally, tallyOf } from "../../rollouts/index.ts";

export type CauseSummary = {
  cause: EdgeCause;
  calls: number;
  /** Tokens before the branches: what a trainer computes again because of them. */
  repeated_tokens: number;
  /** The first call that shows both sides, else the first one. */
  example: { rollout: string; turn: number; position: number | null; before: string | null; now: string | null };
};

export type FidelitySummary = {
  rollouts: number;
  /** As many as rollouts, or more where the infrastructure broke some: their calls and tokens are counted too. */
  attempts: number;
  in_loss: number;
  /** Attempts that are in neither loss nor baseline, by cause; of attempts that made no session the run's own report knows. */
  ends: AttemptTally;
  /** Rollouts of which nothing is counted here, for their trajectory or session cannot be read. */
  damaged: number;
  /** Tasks with a group that has different first prompts. */
  different_prompts: DifferentPrompts[];
  calls: number;
  /** Under the requested selection, dummy rows included. */
  rows: number;
  /** Rows with a mask of zeros that only keep the place of a rollout of which nothing is trained. */
  dummy_rows: number;
  tokens: TokenAccount;
  row_inflation: number | null;
  /** Rows and inflation if the same text in other tokens were taken as one sequence. */
  tolerant: { rows: number; row_inflation: number | null };
  matches: Record<string, number>;
  outcomes: Record<string, number>;
  /** Name of a tool or field -> calls whose model did not get it. */
  omitted: Record<string, number>;
  /** Calls of sessions with token continuity: `continued`, or the cause of a new rendering -> count. */
  continuity: Record<string, number>;
  /** The most frequent first. */
  causes: CauseSummary[];
};

export class FidelitySummarizer {
  readonly #options: Partial<SelectOptions>;
  readonly #rollouts = new Set<string>();
  readonly #attempts = new Set<string>();
  readonly #prompts = new GroupPrompts();
  readonly #ends: AttemptEnd[] = [];
  readonly #summary = { in_loss: 0, calls: 0, rows: 0, dummy_rows: 0, matches: {}, outcomes: {}, continuity: {} };
  #damaged = 0;
  #tokens = addAccounts([]);
  #tolerant = { rows: 0, tokens: addAccounts([]) };
  #omitted: Record<string, number> = {};
  readonly #causes = new Map<EdgeCause, CauseSummary>();

  constructor(options: Partial<SelectOptions>) {
    this.#options = options;
  }

  add(trajectory: Trajectory): void {
    this.#prompts.add(trajectory);
    const selected = selectRows(trajectory, this.#options);
    const tolerant = selectRows(trajectory, { ...this.#options, strategy: "tolerant" });
    const { task, group, rollout_id, session_id } = trajectory;
    const rollout = JSON.stringify(rollout_id === null ? [session_id] : [task.id, group.id, rollout_id]);
    const attempt = `${rollout} ${trajectory.attempt}`;
    this.#rollouts.add(rollout);
    if (selected.standing.in_loss && !this.#attempts.has(attempt)) this.#summary.in_loss++;
    if (!this.#attempts.has(attempt)) this.#ends.push(endOf(trajectory));
    this.#attempts.add(attempt);
    this.#summary.calls += trajectory.calls.length;
    this.#summary.rows += selected.row_count;
    if (selected.tokens.trained === 0) this.#summary.dummy_rows += selected.row_count;
    this.#tokens = addAccounts([this.#tokens, selected.tokens]);
    this.#tolerant = { rows: this.#tolerant.rows + tolerant.row_count, tokens: addAccounts([this.#tolerant.tokens, tolerant.tokens]) };
    this.#omitted = addOmitted([this.#omitted, trajectory.fidelity.omitted]);
    for (const [how, calls] of Object.entries(trajectory.fidelity.continuity)) count(this.#summary.continuity, how, calls);
    for (const [index, call] of trajectory.calls.entries()) this.#addCall(call, index + 1, trajectory);
  }

  /** So many rollouts cannot be read. */
  leaveOut(rollouts: number): void {
    this.#damaged += rollouts;
  }

  get summary(): FidelitySummary {
    return {
      rollouts: this.#rollouts.size,
      attempts: this.#attempts.size,
      ...this.#summary,
      omitted: this.#omitted,
      ends: tallyOf(this.#ends),
      damaged: this.#damaged,
      different_prompts: this.#prompts.different,
      tokens: this.#tokens,
      row_inflation: rowInflationOf(this.#tokens),
      tolerant: { rows: this.#tolerant.rows, row_inflation: rowInflationOf(this.#tolerant.tokens) },
      causes: [...this.#causes.values()].sort((a, b) => b.calls - a.calls),
    };
  }

  #addCall(call: CallRecord, turn: number, { rollout_id, session_id }: Trajectory): void {
    count(this.#summary.matches, call.match);
    count(this.#summary.outcomes, call.outcome);
    if (call.cause === null) return;
    const { position = null, parent_text = null, child_text = null } = call.difference ?? {};
    const example = { rollout: rollout_id ?? session_id, turn, position, before: parent_text, now: child_text };
    const known = this.#causes.get(call.cause) ?? { cause: call.cause, calls: 0, repeated_tokens: 0, example };
    known.calls++;
    known.repeated_tokens += position ?? 0;
    if (known.example.now === null && example.now !== null) known.example = example;
    this.#causes.set(call.cause, known);
  }
}

function endOf(trajectory: Trajectory): AttemptEnd {
  const { task, group, mask_reason, fidelity } = trajectory;
  const summary = { sampled_tokens: fidelity.sampled_tokens, untrained_by_agent: untrainedByAgent(trajectory) };
  return { task_id: task.id, group_id: group.id, mask_reason, summary };
}

function count(counts: Record<string, number>, key: string, by = 1): void {
  counts[key] = (counts[key] ?? 0) + by;
}
