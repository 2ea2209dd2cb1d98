/**
 * Numbers that a call has for each of its tokens: the experts that the tokens took, and the tokens that the sampling kept. They are
 * stored as bytes beside the session log, because they are many. The log names the bytes by their hash.
 */
import { z } from "zod";
import { wordsOf } from "../reasons/meaning.ts";
import { routingReasons } from "../reasons/routing.ts";
import { supportReasons } from "../reasons/support.ts";

/** Type of an expert's number: little-endian; unsigned, except `int32`. */
export const RoutingType = z.enum(["uint8", "uint16", "int32"]);
export type RoutingType = z.infer<typeof RoutingType>;

/**
 * The experts that the tokens of a call took, as bytes with this hash. Each token has `layers` × `top_k` numbers. The first
 * ones belong to token `start` of the call's prompt and sample. The base call stands earlier in the log and has the numbers of the
 * tokens before `start`. The last sampled token never has numbers, because the engine computed nothing on it.
 */
export const RoutingRecord = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** null where `start` is 0. */
  base_call_id: z.string().nullable(),
  start: z.number().int().nonnegative(),
  rows: z.number().int().positive(),
  layers: z.number().int().positive(),
  top_k: z.number().int().positive(),
  dtype: RoutingType,
});
export type RoutingRecord = z.infer<typeof RoutingRecord>;

/** Length of the bytes that the record names. */
export const routingBytesOf = ({ rows, layers, top_k, dtype }: Pick<RoutingRecord, "rows" | "layers" | "top_k" | "dtype">): number =>
  rows * layers * top_k * { uint8: 1, uint16: 2, int32: 4 }[dtype];

export const RoutingReason = z.enum(wordsOf(routingReasons));
export type RoutingReason = z.infer<typeof RoutingReason>;

/**
 * The tokens that `top_p`, `top_k` and `min_p` kept at each place of a sample, as bytes with this hash: little-endian int32, first
 * `rows` counts, one for each sampled token, then the `ids` of all kept tokens in that order.
 */
export const SupportRecord = z.strictObject({
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  rows: z.number().int().positive(),
  ids: z.number().int().positive(),
});
export type SupportRecord = z.infer<typeof SupportRecord>;

/** Length of the bytes that the record names. */
export const supportBytesOf = ({ rows, ids }: Pick<SupportRecord, "rows" | "ids">): number => (rows + ids) * 4;

export const SupportReason = z.enum(wordsOf(supportReasons));
export type SupportReason = z.infer<typeof SupportReason>;
