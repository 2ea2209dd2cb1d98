/**
 * Which error answers prove that a server sampled nothing. A call that may have sampled is never counted as 0 tokens, and
 * one that was only refused is not counted as unknown.
 */

/** `status` and the text of an answer that is no 200. */
export type SampledNothing = (status: number, text: string) => boolean;

/**
 * What HTTP says for any server: it did not take the request. A 500 may come behind a whole sample, a 502 or 504 is a
 * gateway's word about a server that it lost, and a 408 or 499 is a wait that was too long.
 */
export const sampledNothing: SampledNothing = (status) =>
  (status >= 400 && status < 500 && status !== 408 && status !== 499) || status === 503 || status === 529;
