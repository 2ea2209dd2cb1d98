/** Checks the experts that an engine told against the call's tokens, and leaves out rows that an earlier call has. */
import type { RoutingReason } from "../../../base/schema/log/token-numbers.ts";
import type { EngineFacts, RoutedExperts } from "../../../engines/index.ts";

/** `base_call_id`: the earlier call that has the rows before `start`. `missing`: why the experts are unknown. */
export type SampledRouting = (RoutedExperts & { base_call_id: string | null }) | { missing: RoutingReason };

/** The first `length` tokens have their rows in the earlier call `call_id`. */
export type RoutedBase = { call_id: string; length: number };

export type RoutedTokens = {
  facts: EngineFacts | null;
  /** "unreadable": the engine told them, but not in its own encoding. */
  told: RoutedExperts | "unreadable" | null;
  /** The engine was not asked for them. */
  isUnasked: boolean;
  /** Number of tokens of prompt and sample. */
  tokens: number;
  /** First tokens that the engine was asked to leave out. */
  asked: RoutedBase | null;
  /** First tokens that are left out too, because the prompt's base has their rows. */
  known: RoutedBase | null;
};

/** Returns null if the model has no experts, or is not known to have any. */
export function sampledRouting({ facts, told, isUnasked, tokens, asked, known }: RoutedTokens): SampledRouting | null {
  if (told === null) {
    if (!facts?.experts && !facts?.routing && !facts?.routing_missing) return null;
    return { missing: facts.routing && isUnasked ? "streamed" : (facts.routing_missing ?? "not_told") };
  }
  if (told === "unreadable") return { missing: "misfit" };
  // The last token has no row, because the engine computes no step on it.
  if (told.start + told.rows !== tokens - 1 || !areExperts(told, facts?.experts ?? null)) return { missing: "misfit" };
  if (told.start !== (asked?.length ?? 0)) return { missing: "misfit" };
  // A record has at least one row.
  const start = Math.min(known?.length ?? 0, tokens - 2);
  return known !== null && start > told.start
    ? { ...withoutFirst(told, start - told.start), base_call_id: known.call_id }
    : { ...told, base_call_id: asked?.call_id ?? null };
}

/** Also refuses -1, which a server may write if it has no number. */
function areExperts({ bytes, dtype }: RoutedExperts, experts: number | null): boolean {
  const numbers = numbersOf(bytes, dtype);
  // If it is unsigned, the type is the smallest for the number of experts: a byte for up to 256.
  const limit = experts ?? Number.POSITIVE_INFINITY;
  for (const one of numbers) if (one < 0 || one >= limit) return false;
  return true;
}

/** Copies the bytes, because in a larger buffer they may lie at an unaligned offset. */
function numbersOf(bytes: Buffer, dtype: RoutedExperts["dtype"]): Uint8Array | Uint16Array | Int32Array {
  if (dtype === "uint8") return bytes;
  const { buffer } = new Uint8Array(bytes);
  return dtype === "uint16" ? new Uint16Array(buffer) : new Int32Array(buffer);
}

function withoutFirst(told: RoutedExperts, count: number): RoutedExperts {
  const rowBytes = told.bytes.length / told.rows;
  return { ...told, start: told.start + count, rows: told.rows - count, bytes: told.bytes.subarray(count * rowBytes) };
}
