/** What deaths of processes cost a run: how its rollouts went on, and how many tokens were sampled twice. */
import type { RolloutRecord } from "../../base/schema/rollout.ts";

export type ResumeTally = {
  /** Rollouts that went on from their last finished call, and tokens of finished calls that were not sampled again. */
  replayed: number;
  spared_tokens: number;
  /** Rollouts that began anew after finished calls, and the tokens of those calls: they were sampled twice. */
  begun_again: number;
  again_tokens: number;
};

/** `records`: the last one of each rollout. */
export function resumeTally(records: readonly Pick<RolloutRecord, "resume">[]): ResumeTally {
  const all = records.flatMap(({ resume }) => resume ?? []);
  const sum = (numbers: number[]): number => numbers.reduce((total, number) => total + number, 0);
  return {
    replayed: all.filter(({ how }) => how === "replay").length,
    spared_tokens: sum(all.map(({ spared_tokens }) => spared_tokens)),
    begun_again: all.filter(({ again_tokens }) => again_tokens > 0).length,
    again_tokens: sum(all.map(({ again_tokens }) => again_tokens)),
  };
}

/** In words, for a person; null where no process died over finished calls. */
export function describedResumes({ replayed, spared_tokens, begun_again, again_tokens }: ResumeTally): string | null {
  if (replayed + begun_again === 0) return null;
  return `after deaths of the process: ${replayed} rollouts went on by a replay, which spared ${spared_tokens} sampled tokens; ${begun_again} began anew, and ${again_tokens} tokens were sampled twice`;
}
