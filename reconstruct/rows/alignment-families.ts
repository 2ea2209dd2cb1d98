/**
 * How trainers align masks and logprobs with tokens. An error by one position passes every length check and ruins training
 * silently, so all exporters share this arithmetic.
 *
 * For a row of T tokens, P of them prompt: entry i of `fullLength` belongs to token i; entry j of `responseOnly` to
 * response token j, which is token P + j; entry i of `shifted` to token i + 1 (which the model predicts at i).
 */
import { AlidadeError } from "../../base/errors.ts";
import type { FlatRow, FlatSegment } from "./flat-row.ts";

/** The number that a format writes for a token that was not sampled in this row; trainers differ. */
export type Filler = { filler?: number };

export type Aligned = { mask: (0 | 1)[]; logprobs: number[] };

/** Unshifted, one for each token. A trained token without a logprob is refused, never filled. */
export function fullLength(row: FlatRow, { filler = 0 }: Filler = {}): Aligned {
  const logprobs = row.logprobs.map((logprob, at) => {
    if (row.loss_mask[at] === 0) return filler;
    if (logprob === null)
      throw new AlidadeError("internal", `Token ${at} of row ${row.row_index} of ${row.trajectory_id} is trained and has no logprob.`);
    return logprob;
  });
  return { mask: row.loss_mask, logprobs };
}

/**
 * What the row's teacher gave each token, unshifted; null where a trained one was not scored, for a number there would be invented.
 * Null as a whole: no teacher scored the rollout.
 */
export function teacherLogprobs(row: FlatRow, { filler = 0 }: Filler = {}): (number | null)[] | null {
  refusePacked(row);
  return row.teacher_logprobs?.map((logprob, at) => (row.loss_mask[at] === 0 ? filler : logprob)) ?? null;
}

/** A teacher's tokens at each place of a row, the likeliest first. Empty where the mask is 0, and where it was not scored. */
export type TeacherTop = { ids: number[][]; logprobs: number[][] };

/** Null: no teacher was asked for its likeliest tokens. */
export function teacherTop(row: FlatRow): TeacherTop | null {
  refusePacked(row);
  const { teacher_top_ids: ids, teacher_top_logprobs: logprobs, loss_mask } = row;
  if (ids === undefined || logprobs === undefined) return null;
  const trained = <T>(lists: T[][]): T[][] => lists.map((list, at) => (loss_mask[at] === 1 ? list : []));
  return { ids: trained(ids), logprobs: trained(logprobs) };
}

/** In a packed tree the token before is not the one on the left: only formats that read `parent_index` can take it. */
function refusePacked(row: FlatRow): void {
  if (row.parent_index !== null)
    throw new AlidadeError("config_invalid", "This format has no tree attention, so it cannot take rows of the selection `tree`.", {
      param: "select",
    });
}

/** Prompt and response apart; mask and logprobs are as long as the response. */
export function responseOnly(row: FlatRow, options: Filler = {}): Aligned & { prompt_ids: number[]; response_ids: number[] } {
  refusePacked(row);
  const { mask, logprobs } = fullLength(row, options);
  const { prompt_length: p, token_ids } = row;
  return { prompt_ids: token_ids.slice(0, p), response_ids: token_ids.slice(p), mask: mask.slice(p), logprobs: logprobs.slice(p) };
}

/** Inputs without the last token; targets, mask and logprobs without the first: entry i is about target i. */
export function shifted(row: FlatRow, options: Filler = {}): Aligned & { input_ids: number[]; target_ids: number[] } {
  refusePacked(row);
  const { mask, logprobs } = fullLength(row, options);
  const { token_ids } = row;
  return { input_ids: token_ids.slice(0, -1), target_ids: token_ids.slice(1), mask: mask.slice(1), logprobs: logprobs.slice(1) };
}

/** One generation of a row: everything before it, and what was sampled. */
export type RowTurn = {
  call_id: string;
  agent: string;
  prompt_ids: number[];
  token_ids: number[];
  logprobs: (number | null)[];
  /** One for each sampled token: trained in this row. */
  mask: (0 | 1)[];
  policy_version: string | null;
  policy_step: number | null;
};

/** A row turn by turn. A sample that the tree splits is one turn again; its policy is that of its first token. */
export function turnsOf(row: FlatRow): RowTurn[] {
  refusePacked(row);
  const turns: { first: FlatSegment; end: number }[] = [];
  for (const segment of row.segments) {
    if (segment.kind !== "sampled") continue;
    const last = turns.at(-1);
    if (last?.first.call_id === segment.call_id && last.end === segment.start) last.end = segment.end;
    else turns.push({ first: segment, end: segment.end });
  }
  return turns.map(({ first, end }) => ({
    call_id: first.call_id,
    agent: first.agent,
    prompt_ids: row.token_ids.slice(0, first.start),
    token_ids: row.token_ids.slice(first.start, end),
    logprobs: row.logprobs.slice(first.start, end),
    mask: row.loss_mask.slice(first.start, end),
    policy_version: first.policy_version,
    policy_step: first.policy_step,
  }));
}

/** One value for each token, from the segment in which it lies. */
export function perToken<T>(row: FlatRow, read: (segment: FlatSegment) => T): T[] {
  const out: T[] = [];
  for (const segment of row.segments) for (let at = segment.start; at < segment.end; at++) out.push(read(segment));
  return out;
}
