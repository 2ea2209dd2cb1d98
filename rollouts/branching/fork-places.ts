/** The turns behind which a finished rollout can be forked. */
import { AlidadeError } from "../../base/errors.ts";
import type { EngineFacts } from "../../engines/index.ts";
import { cutAfter, type SessionRecording, whyNoRecordedPrompt } from "../../proxy/index.ts";
import type { ForkPlace } from "./branching-policy.ts";

export type Forked = Pick<ForkPlace, "rollout_id" | "depth" | "reward">;

/** What this rollout sampled itself: what it replayed belongs to another one, which has these places. */
export function forkPlaces(
  rollout: Forked,
  recording: SessionRecording,
  engines: readonly EngineFacts[],
  forksAt: (turn: number) => number,
): ForkPlace[] {
  const found = recording.calls.flatMap(({ number }) => {
    const next = nextOf(recording, number);
    if (next === null || next.finished?.replayed_from !== undefined || next.call.turn === null) return [];
    if (!engines.some((facts) => whyNoRecordedPrompt(next, facts) === null)) return [];
    const after_tools = next.call.messages.at(-1)?.parts.some(({ type }) => type === "tool_result") ?? false;
    return [{ ...rollout, turn: number, surprise: meanSurprise(next.finished?.logprobs ?? null), after_tools, forks: forksAt(number) }];
  });
  return found.map((place, index) => ({ ...place, index, of: found.length }));
}

/** null where the rollout cannot be cut there: it is no turn of the main agent, the last one, or beside another call of its own. */
function nextOf(recording: SessionRecording, turn: number) {
  try {
    return cutAfter(recording, turn).next;
  } catch (error) {
    if (error instanceof AlidadeError && error.code === "request_invalid") return null;
    throw error;
  }
}

/** null: one is missing, or there is none. */
function meanSurprise(logprobs: readonly (number | null)[] | null): number | null {
  if (logprobs === null || logprobs.length === 0 || logprobs.includes(null)) return null;
  return -logprobs.reduce<number>((sum, logprob) => sum + (logprob ?? 0), 0) / logprobs.length;
}
