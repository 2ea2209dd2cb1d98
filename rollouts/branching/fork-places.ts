/** The turns behind which a finished rollout can be forked. */
import type { EngineFacts } from "../../engines/index.ts";
import { placesToForkAt, type SessionRecording, whyNoRecordedPrompt } from "../../proxy/index.ts";
import type { ForkPlace } from "./branching-policy.ts";

export type Forked = Pick<ForkPlace, "rollout_id" | "depth" | "reward">;

/** What this rollout sampled itself: what it replayed belongs to another one, which has these places. */
export function forkPlaces(
  rollout: Forked,
  recording: SessionRecording,
  engines: readonly EngineFacts[],
  forksAt: (turn: number) => number,
): ForkPlace[] {
  const found = placesToForkAt(recording).flatMap(({ turn, next }) => {
    if (turn === 0 || next.finished?.replayed_from !== undefined || next.call.turn === null) return [];
    if (!engines.some((facts) => whyNoRecordedPrompt(next, facts) === null)) return [];
    const after_tools = next.call.messages.at(-1)?.parts.some(({ type }) => type === "tool_result") ?? false;
    return [{ ...rollout, turn, surprise: meanSurprise(next.finished?.logprobs ?? null), after_tools, forks: forksAt(turn) }];
  });
  return found.map((place, index) => ({ ...place, index, of: found.length }));
}

/** null: one is missing, or there is none. */
function meanSurprise(logprobs: readonly (number | null)[] | null): number | null {
  if (logprobs === null || logprobs.length === 0 || logprobs.includes(null)) return null;
  return -logprobs.reduce<number>((sum, logprob) => sum + (logprob ?? 0), 0) / logprobs.length;
}
