/**
 * Reads the experts of the tokens in an answer of SGLang 0.5.23 with `--enable-return-routed-experts`: base64 of int32 numbers, without
 * their shape. Each token has a number for each layer and each of its experts; a layer without experts has zeros. Row 0 is about token
 * `routed_experts_start_len` of the prompt. The last sampled token has no row, because the engine computed nothing on it.
 */
import { z } from "zod";
import { type RoutingReason, routingBytesOf } from "../../base/schema/session-log.ts";
import type { ModelExperts } from "../chat/experts.ts";
import type { RoutedExperts } from "../engine.ts";

/** The experts of a model whose rows can be read. */
export type KnownExperts = { count: number; row: NonNullable<ModelExperts["row"]> };

/** `tokens`: how many prompt and sample have together. null: the numbers do not fit them. */
export function readRouting(base64: string, start: number, tokens: number, { count, row }: KnownExperts): RoutedExperts | null {
  const shape = { start, rows: tokens - 1 - start, ...row };
  const length = shape.rows < 1 ? 0 : routingBytesOf({ ...shape, dtype: "int32" });
  // Compared before anything is decoded: the text comes from outside, and no longer one is read.
  if (length === 0 || base64.length !== Math.ceil(length / 3) * 4) return null;
  const bytes = Buffer.from(base64, "base64");
  return bytes.length === length ? { ...shape, ...narrowed(bytes, count) } : null;
}

/** The smallest type that holds the number of experts, as vLLM takes it. Numbers that are no experts stay as they are. */
function narrowed(bytes: Buffer, count: number): Pick<RoutedExperts, "dtype" | "bytes"> {
  const width = count <= 2 ** 8 ? 1 : count <= 2 ** 16 ? 2 : 4;
  const numbers = bytes.length / 4;
  const small = Buffer.alloc(numbers * width);
  for (let at = 0; at < numbers; at++) {
    const number = bytes.readInt32LE(at * 4);
    if (width === 4 || number < 0 || number >= count) return { dtype: "int32", bytes };
    small.writeUIntLE(number, at * width, width);
  }
  return { dtype: width === 1 ? "uint8" : "uint16", bytes: small };
}

/** Options of the server that its `/server_info` repeats. */
export const RoutingOptions = z.looseObject({
  enable_hierarchical_cache: z.boolean().nullish().catch(null),
  enable_lmcache: z.boolean().nullish().catch(null),
  disaggregation_mode: z.string().nullish().catch(null),
  pp_size: z.number().nullish().catch(null),
});

/**
 * SGLang keeps experts by the place of a token in the GPU's cache. Keys and values that come from elsewhere bring none along, and each
 * pipeline stage knows only its own layers. Then rows are of other tokens, or zeros, and nothing in the answer shows it.
 */
export function whyRowsAreLost(options: z.infer<typeof RoutingOptions> | undefined): Extract<RoutingReason, "rows_lost"> | null {
  // A router in between may not repeat them. Then any of them may be on.
  if (options === undefined || Object.keys(RoutingOptions.shape).every((name) => !Object.hasOwn(options, name))) return "rows_lost";
  const { enable_hierarchical_cache, enable_lmcache, disaggregation_mode = null, pp_size } = options;
  const isSplit = disaggregation_mode !== null && disaggregation_mode !== "null";
  return enable_hierarchical_cache || enable_lmcache || isSplit || (pp_size ?? 1) > 1 ? "rows_lost" : null;
}
