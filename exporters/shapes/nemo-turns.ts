/** A row as NeMo Gym and NeMo RL know it: what the policy generated, and between it what came in. */
import type { FlatRow } from "../../reconstruct/index.ts";
import { trainedRuns } from "../rows/trained-runs.ts";

export type NemoTurn = {
  call_id: string;
  /** What the engine saw, from the first token of the row. */
  prompt_ids: number[];
  /** The end of it, from where the turn before ended. */
  new_ids: number[];
  token_ids: number[];
  logprobs: number[];
};

/**
 * A dummy row is its prompt, whole, for by that its group is known, and one token that was not sampled: both formats want a
 * turn, and say elsewhere that nothing of it is trained.
 */
export function nemoTurns(row: FlatRow): NemoTurn[] {
  if (row.dummy) {
    const prompt_ids = row.token_ids;
    return [{ call_id: "", prompt_ids, new_ids: prompt_ids, token_ids: lastOfText(row), logprobs: [0] }];
  }
  let end = 0;
  return trainedRuns(row).map(({ call_id, prompt_ids, token_ids, logprobs }) => {
    const new_ids = prompt_ids.slice(end);
    end = prompt_ids.length + token_ids.length;
    return { call_id, prompt_ids, new_ids, token_ids, logprobs };
  });
}

/** Returns the last token that is no pad: one more pad would not match the picture. */
function lastOfText({ token_ids, media = [] }: FlatRow): number[] {
  const last = token_ids.findLastIndex((_, at) => !media.some(({ start, length }) => at >= start && at < start + length));
  return last < 0 ? token_ids.slice(-1) : token_ids.slice(last, last + 1);
}
