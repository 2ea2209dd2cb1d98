/** A row turn by turn, for formats that train every token of a turn: they have no mask inside it. */
import { type FlatRow, type RowTurn, turnsOf } from "../../reconstruct/index.ts";

export type TrainedRun = Omit<RowTurn, "mask" | "logprobs"> & { logprobs: number[] };

/**
 * The longest stretches of trained tokens, each with everything before it as its prompt. A turn is one of them, unless
 * some of its tokens are not trained (a grammar forced them): those become prompt of the next, which is what they are.
 */
export function trainedRuns(row: FlatRow): TrainedRun[] {
  return turnsOf(row).flatMap((turn) =>
    runsOf(turn.mask).map(({ start, end }) => {
      const { mask, logprobs, ...rest } = turn;
      return {
        ...rest,
        prompt_ids: [...turn.prompt_ids, ...turn.token_ids.slice(0, start)],
        token_ids: turn.token_ids.slice(start, end),
        // A row trains no token without a logprob.
        logprobs: logprobs.slice(start, end).filter((logprob) => logprob !== null),
      };
    }),
  );
}

/** Where the mask is 1: `end` is exclusive. */
export function runsOf(mask: (0 | 1)[]): { start: number; end: number }[] {
  const runs: { start: number; end: number }[] = [];
  for (const [at, each] of mask.entries()) {
    if (each === 0) continue;
    const last = runs.at(-1);
    if (last?.end === at) last.end = at + 1;
    else runs.push({ start: at, end: at + 1 });
  }
  return runs;
}
