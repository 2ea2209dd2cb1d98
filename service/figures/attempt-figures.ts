/** What figures by policy step need of an attempt, counted from its trajectory. */

import type { Trajectory } from "../../base/schema/trajectory.ts";
import { selectRows } from "../../reconstruct/index.ts";
import type { AttemptFigures } from "../ledger/index.ts";
import { engineSpans } from "./engine-spans.ts";

/** `mostSpans`: more spans of calls at engines are left out; as many as a result row holds where it is not given. */
export function attemptFigures(trajectory: Trajectory, mostSpans?: number): AttemptFigures {
  const { row_tokens, tree_tokens, excluded } = selectRows(trajectory).tokens;
  const prompts = trajectory.calls.flatMap(({ usage, other_policy, replayed_from }) => {
    const { prompt_tokens = null, cached_tokens = null } = usage ?? {};
    // A replayed prompt reached no engine.
    return other_policy || replayed_from !== null || prompt_tokens === null || cached_tokens === null
      ? []
      : [{ prompt_tokens, cached_tokens }];
  });
  return {
    data_source: trajectory.task.data_source,
    is_cut: trajectory.status === "cut",
    edges: trajectory.fidelity.matches,
    row_tokens,
    tree_tokens,
    prompt_tokens: prompts.reduce((sum, prompt) => sum + prompt.prompt_tokens, 0),
    cached_tokens: prompts.reduce((sum, prompt) => sum + prompt.cached_tokens, 0),
    excluded,
    causes: trajectory.fidelity.causes,
    engine_spans: engineSpans(trajectory.calls, mostSpans),
  };
}
