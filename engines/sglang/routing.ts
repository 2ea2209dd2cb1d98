/**
 * Reads which experts computed each token, from an answer of SGLang 0.5.23 with `--enable-return-routed-experts`.
 *
 * The answer has base64 of int32 numbers and no shape. A token's row has one number for each layer and each expert of that layer.
 * A layer without experts has zeros. Row 0 belongs to token `routed_experts_start_len` of the prompt. The last sampled token has no
 * row, because it did not go through the model.
 */
import { z } from "zod";
import { type RoutingReason, routingBytesOf } from "../../base/schema/log/token-numbers.ts";
import type { ModelExperts } from "../chat/experts.ts";
import type { RoutedExperts } from "../engine.ts";

/** The experts of a model whose rows can be read. */
export type KnownExperts = { count: number; row: NonNullable<ModelExperts["row"]> };

/** `tokens`: the length of prompt and sample together. Returns null if the numbers do not fit this length. */
export function readRouting(base64: string, start: number, tokens: number, { count, row }: KnownExperts): RoutedExperts | null {
  const shape = { start, rows: tokens - 1 - start, ...row };
  const length = shape.rows < 1 ? 0 : routingBytesOf({ ...shape, dtype: "int32" });
  // The text comes from outside. One of another length is not decoded.
  if (length === 0 || base64.length !== Math.ceil(length / 3) * 4) return null;
  const bytes = Buffer.from(base64, "base64");
  return bytes.length === length ? { ...shape, ...narrowed(bytes, count) } : null;
}

/** Takes the smallest type that holds the number of experts, as vLLM does. If a number names no expert, all stay int32. */
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

/** Options of the server, as its `/server_info` shows them. */
export const RoutingOptions = z.looseObject({
  enable_hierarchical_cache: z.boolean().nullish().catch(null),
  enable_lmcache: z.boolean().nullish().catch(null),
  disaggregation_mode: z.string().nullish().catch(null),
  pp_size: z.number().nullish().catch(null),
});

/**
 * Returns `rows_lost` if an answer may have wrong rows. SGLang keeps experts by a token's place in the GPU's cache. Keys and values that
 * another cache or server brings have no experts. A pipeline stage knows only its own layers. Such rows belong to other tokens, or are
 * zeros, and the answer does not show it.
 */
export function whyRowsAreLost(options: z.infer<typeof RoutingOptions> | undefined): Extract<RoutingReason, "rows_lost"> | null {
  // A router in front of the server may hide its options, so any of them may be on.
  if (options === undefined || Object.keys(RoutingOptions.shape).every((name) => !Object.hasOwn(options, name))) return "rows_lost";
  const { enable_hierarchical_cache, enable_lmcache, disaggregation_mode = null, pp_size } = options;
  const isSplit = disaggregation_mode !== null && disaggregation_mode !== "null";
  return enable_hierarchical_cache || enable_lmcache || isSplit || (pp_size ?? 1) > 1 ? "rows_lost" : null;
}
