/**
 * A row as the families of trainers want it. Token `i` of a row was sampled with the logprob `i` of the row, given the
 * tokens before it; what differs between families is where an array starts and whether it is shifted:
 *
 * - A, response only: `toResponse`; entry `j` belongs to response token `j`.
 * - B, full length: `toFull`; entry `i` belongs to token `i`.
 * - C, full length, shifted by one: `toShifted`; entry `i` belongs to token `i + 1`.
 * - D, turn by turn: `toTurns`; the full prompt of each call and what it sampled.
 *
 * Logprobs are 0.0 wherever the mask is 0: trainers multiply them away but do not read null.
 */
import { AlidadeError } from "../errors.ts";
import type { FlatRow } from "../reconstruct/index.ts";

export type Mask = (0 | 1)[];

export type FullRow = { token_ids: number[]; mask: Mask; logprobs: number[] };

/** B. Throws `internal` where a trained token has no logprob: 0.0 would mean a probability of 1. */
export function toFull(row: FlatRow): FullRow {
  return {
    token_ids: row.token_ids,
    mask: row.loss_mask,
    logprobs: row.loss_mask.map((mask, at) => (mask === 1 ? logprobAt(row, at) : 0)),
  };
}

function logprobAt(row: FlatRow, at: number): number {
  const logprob = row.logprobs[at];
  if (typeof logprob === "number") return logprob;
  throw new AlidadeError("internal", `token ${at} of the row ${row.trace_id} of ${row.trajectory_id} is trained and has no logprob`);
}

export type ResponseRow = { prompt_ids: number[]; response_ids: number[]; response_mask: Mask; response_logprobs: number[] };

/** A. The response begins with the first sampled token of the row, trained or not. */
export function toResponse(row: FlatRow): ResponseRow {
  const { token_ids, mask, logprobs } = toFull(row);
  const start = row.prompt_length;
  return {
    prompt_ids: token_ids.slice(0, start),
    response_ids: token_ids.slice(start),
    response_mask: mask.slice(start),
    response_logprobs: logprobs.slice(start),
  };
}

export type ShiftedRow = { input_ids: number[]; target_ids: number[]; mask: Mask; logprobs: number[] };

/** C. All four arrays are one shorter than the row; mask and logprob are those of the target. */
export function toShifted(row: FlatRow): ShiftedRow {
  const { token_ids, mask, logprobs } = toFull(row);
  return { input_ids: token_ids.slice(0, -1), target_ids: token_ids.slice(1), mask: mask.slice(1), logprobs: logprobs.slice(1) };
}

export type Turn = {
  call_id: string;
  /** Everything before the sample: what the engine conditioned on. */
  prompt_ids: number[];
  completion_ids: number[];
  completion_mask: Mask;
  /** null where any of them is unknown. */
  completion_logprobs: number[] | null;
  policy_version: string | null;
};

/** D. One for each call whose sample lies on the row's path, in order; a call that is trained in another row has a mask of 0. */
export function toTurns(row: FlatRow): Turn[] {
  const turns: { call_id: string; start: number; end: number; policy_version: string | null }[] = [];
  for (const segment of row.segments) {
    if (segment.kind !== "sampled") continue;
    const last = turns.at(-1);
    // A sample is split where another branch leaves it or the weights changed.
    if (last?.end === segment.start && last.call_id === segment.call_id) last.end = segment.end;
    else turns.push({ call_id: segment.call_id, start: segment.start, end: segment.end, policy_version: segment.policy_version });
  }
  return turns.map(({ call_id, start, end, policy_version }) => {
    const logprobs = row.logprobs.slice(start, end);
    return {
      call_id,
      prompt_ids: row.token_ids.slice(0, start),
      completion_ids: row.token_ids.slice(start, end),
      completion_mask: row.loss_mask.slice(start, end),
      completion_logprobs: logprobs.every((logprob) => logprob !== null) ? logprobs : null,
      policy_version,
    };
  });
}
