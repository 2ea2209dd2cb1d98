/** What one attempt adds to the fidelity report of its run (`alidade fidelity`). */
import type { EdgeCause, Trajectory } from "../../base/schema/trajectory.ts";
import { promptsOf } from "../../exporters/source/index.ts";
import {
  defaultSelectOptions,
  type RoutingFidelity,
  routingFidelityOf,
  type SelectOptions,
  type SupportFidelity,
  selectRows,
  supportFidelityOf,
  type Teaching,
  type TokenAccount,
  teachingOf,
} from "../../reconstruct/index.ts";

export type AttemptFidelity = {
  /** Under the options that it was counted with, as `rows` and `tokens` are. */
  in_loss: boolean;
  calls: number;
  rows: number;
  tokens: TokenAccount;
  /** If the same text in other tokens were taken as one sequence. */
  tolerant: { rows: number; row_tokens: number; tree_tokens: number };
  /** Hashes of the first prompts of its rows, as exporters compare them in a group; null: it is not in the loss. */
  prompts: string[] | null;
  outcomes: Record<string, number>;
  omitted: Record<string, number>;
  continuity: Record<string, number>;
  /** How many of its tokens and rows have their experts on record. */
  routing: RoutingFidelity;
  /** How many tokens of calls that were cut have their kept tokens on record. */
  support: SupportFidelity;
  /** What its teacher scored; null: none did. */
  teacher: ({ model: string } & Teaching) | null;
  causes: AttemptCause[];
  /** What its log holds no more. */
  damaged: { call_id: string | null; reason: string }[];
};

export type AttemptCause = {
  cause: EdgeCause;
  calls: number;
  /** Tokens before the branches: what a trainer computes again because of them. */
  repeated_tokens: number;
  /** The first call that shows both sides, else the first one. */
  example: CauseExample;
};

export type CauseExample = { turn: number; position: number | null; before: string | null; now: string | null };

export function attemptFidelityOf(trajectory: Trajectory, options: Partial<SelectOptions> = {}): AttemptFidelity {
  const selected = selectRows(trajectory, options);
  const tolerant = isAsTolerant(trajectory, options) ? selected : selectRows(trajectory, { ...options, strategy: "tolerant" });
  const { outcomes, omitted, continuity, damaged } = trajectory.fidelity;
  const { row_tokens, tree_tokens } = tolerant.tokens;
  return {
    in_loss: selected.standing.in_loss,
    calls: trajectory.calls.length,
    rows: selected.row_count,
    tokens: selected.tokens,
    tolerant: { rows: tolerant.row_count, row_tokens, tree_tokens },
    // Groups are compared as exporters do it by default, whatever the options of the report are.
    prompts: promptsOf(Object.keys(options).length === 0 ? selected : selectRows(trajectory)),
    outcomes,
    omitted,
    continuity,
    routing: routingFidelityOf(trajectory, selected),
    support: supportFidelityOf(trajectory),
    teacher: trajectory.teacher ? { model: trajectory.teacher.model, ...teachingOf(trajectory) } : null,
    causes: causesOf(trajectory),
    damaged: damaged.map(({ call_id, reason }) => ({ call_id, reason })),
  };
}

/** `tolerant` joins only turns that came back as the same text in other tokens. Without one its rows are those of `strict`. */
function isAsTolerant({ calls }: Trajectory, { strategy = defaultSelectOptions.strategy }: Partial<SelectOptions>): boolean {
  return strategy === "strict" && !calls.some(({ match }) => match === "same_text");
}

function causesOf({ calls }: Trajectory): AttemptCause[] {
  const causes = new Map<EdgeCause, AttemptCause>();
  for (const [index, { cause, difference }] of calls.entries()) {
    if (cause === null) continue;
    const { position = null, parent_text = null, child_text = null } = difference ?? {};
    const example = { turn: index + 1, position, before: parent_text, now: child_text };
    const known = causes.get(cause) ?? { cause, calls: 0, repeated_tokens: 0, example };
    known.calls++;
    known.repeated_tokens += position ?? 0;
    if (known.example.now === null && example.now !== null) known.example = example;
    causes.set(cause, known);
  }
  return [...causes.values()];
}
