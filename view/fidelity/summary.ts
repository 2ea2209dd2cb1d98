/** What the trajectories of a run come to: where the sampled tokens went, why contexts part, and what that costs. */

import type { EdgeCause, Trajectory } from "../../base/schema/trajectory.ts";
import { type AttemptEnd, type AttemptTally, tallyOf } from "../../base/statistics/attempt-tally.ts";
import { type DifferentPrompts, GroupPrompts } from "../../exporters/source/index.ts";
import {
  addAccounts,
  addOmitted,
  noSupport,
  ownTokens,
  type RoutingFidelity,
  rowInflationOf,
  type SelectOptions,
  type SupportFidelity,
  type Teaching,
  type TokenAccount,
  untrainedByAgent,
} from "../../reconstruct/index.ts";
import type { TrajectoryFigures } from "../../rollouts/records/index.ts";
import { type AttemptCause, attemptFidelityOf, type CauseExample } from "../../rollouts/records/index.ts";

export type CauseSummary = Omit<AttemptCause, "example"> & { example: { rollout: string } & CauseExample };

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
  /** How many tokens and rows have their experts on record. */
  routing: RoutingFidelity;
  /** How many tokens of calls that were cut have their kept tokens on record. */
  support: SupportFidelity;
  /** Those that scored what was sampled, in the order in which they are met; `rollouts` counts attempts. */
  teachers: TeacherSummary[];
  /** The most frequent first. */
  causes: CauseSummary[];
};

export type TeacherSummary = { model: string; rollouts: number } & Teaching;

export class FidelitySummarizer {
  readonly #options: Partial<SelectOptions>;
  readonly #rollouts = new Set<string>();
  readonly #attempts = new Set<string>();
  readonly #prompts = new GroupPrompts();
  readonly #ends: AttemptEnd[] = [];
  readonly #summary = { in_loss: 0, calls: 0, rows: 0, dummy_rows: 0, matches: {}, outcomes: {}, continuity: {} };
  readonly #routing: RoutingFidelity = { calls: 0, sampled_tokens: 0, recorded_tokens: 0, missing: {}, rows: 0, routed_rows: 0 };
  readonly #support = noSupport();
  #damaged = 0;
  readonly #accounts: TokenAccount[] = [];
  readonly #tolerant = { rows: 0, row_tokens: 0, tree_tokens: 0 };
  #omitted: Record<string, number> = {};
  readonly #causes = new Map<EdgeCause, CauseSummary>();
  readonly #teachers = new Map<string, TeacherSummary>();

  constructor(options: Partial<SelectOptions>) {
    this.#options = options;
  }

  add(trajectory: Trajectory): void {
    const { task, group, rollout_id, session_id, attempt, mask_reason, fidelity } = trajectory;
    const ids = { task_id: task.id, group_id: group.id, rollout_id, session_id, attempt };
    this.addFigures({
      ...ids,
      mask_reason,
      ...ownTokens(fidelity),
      matches: fidelity.matches,
      fidelity: attemptFidelityOf(trajectory, this.#options),
    });
  }

  /** Makes the same summary from the run's index. The index counts for a trainer that states nothing of itself. */
  addFigures(attempt: CountedAttempt): void {
    const { task_id, group_id, rollout_id, session_id, mask_reason, sampled_tokens, excluded, matches, fidelity } = attempt;
    this.#prompts.addPrompts(attempt, fidelity.prompts);
    const rollout = JSON.stringify(rollout_id === null ? [session_id] : [task_id, group_id, rollout_id]);
    const key = `${rollout} ${attempt.attempt}`;
    this.#rollouts.add(rollout);
    if (!this.#attempts.has(key)) {
      if (fidelity.in_loss) this.#summary.in_loss++;
      const untrained_by_agent = untrainedByAgent({ fidelity: { excluded } });
      this.#ends.push({ task_id, group_id, mask_reason, summary: { sampled_tokens, untrained_by_agent } });
    }
    this.#attempts.add(key);
    this.#summary.calls += fidelity.calls;
    this.#summary.rows += fidelity.rows;
    if (fidelity.tokens.trained === 0) this.#summary.dummy_rows += fidelity.rows;
    this.#accounts.push(fidelity.tokens);
    this.#tolerant.rows += fidelity.tolerant.rows;
    this.#tolerant.row_tokens += fidelity.tolerant.row_tokens;
    this.#tolerant.tree_tokens += fidelity.tolerant.tree_tokens;
    this.#omitted = addOmitted([this.#omitted, fidelity.omitted]);
    this.#addRouting(fidelity.routing);
    this.#addSupport(fidelity.support);
    countAll(this.#summary.continuity, fidelity.continuity);
    countAll(this.#summary.matches, matches);
    countAll(this.#summary.outcomes, fidelity.outcomes);
    if (fidelity.teacher) this.#addTeacher(fidelity.teacher);
    for (const cause of fidelity.causes) this.#addCause(cause, rollout_id ?? session_id);
  }

  /** So many rollouts cannot be read. */
  leaveOut(rollouts: number): void {
    this.#damaged += rollouts;
  }

  get summary(): FidelitySummary {
    const tokens = addAccounts(this.#accounts);
    return {
      rollouts: this.#rollouts.size,
      attempts: this.#attempts.size,
      ...this.#summary,
      routing: this.#routing,
      support: this.#support,
      omitted: this.#omitted,
      ends: tallyOf(this.#ends),
      damaged: this.#damaged,
      different_prompts: this.#prompts.different,
      tokens,
      row_inflation: rowInflationOf(tokens),
      tolerant: { rows: this.#tolerant.rows, row_inflation: rowInflationOf(this.#tolerant) },
      teachers: [...this.#teachers.values()],
      causes: [...this.#causes.values()].sort((a, b) => b.calls - a.calls),
    };
  }

  #addRouting({ missing, ...counts }: RoutingFidelity): void {
    for (const name of ["calls", "sampled_tokens", "recorded_tokens", "rows", "routed_rows"] as const) this.#routing[name] += counts[name];
    countAll(this.#routing.missing, missing);
  }

  #addSupport({ missing, ...counts }: SupportFidelity): void {
    for (const name of ["calls", "sampled_tokens", "recorded_tokens"] as const) this.#support[name] += counts[name];
    countAll(this.#support.missing, missing);
  }

  #addTeacher({ model, ...teaching }: NonNullable<CountedAttempt["fidelity"]["teacher"]>): void {
    const none = { model, rollouts: 0, sampled_tokens: 0, scored_tokens: 0, unscored: {}, compared_tokens: 0, gap: 0 };
    const sum = this.#teachers.get(model) ?? none;
    sum.rollouts++;
    for (const name of ["sampled_tokens", "scored_tokens", "compared_tokens", "gap"] as const) sum[name] += teaching[name];
    countAll(sum.unscored, teaching.unscored);
    this.#teachers.set(model, sum);
  }

  #addCause({ cause, calls, repeated_tokens, example: found }: AttemptCause, rollout: string): void {
    const example = { rollout, ...found };
    const known = this.#causes.get(cause) ?? { cause, calls: 0, repeated_tokens: 0, example };
    known.calls += calls;
    known.repeated_tokens += repeated_tokens;
    if (known.example.now === null && example.now !== null) known.example = example;
    this.#causes.set(cause, known);
  }
}

type CountedAttempt = Pick<
  TrajectoryFigures,
  "task_id" | "group_id" | "rollout_id" | "session_id" | "attempt" | "mask_reason" | "sampled_tokens" | "excluded" | "matches" | "fidelity"
>;

function countAll(counts: Record<string, number>, more: Record<string, number>): void {
  for (const [key, by] of Object.entries(more)) counts[key] = (counts[key] ?? 0) + by;
}
