/** Which experts the tokens of a call took, held against the call's tokens, without what an earlier call has. */
import type { RoutingReason } from "../../base/schema/session-log.ts";
import type { EngineFacts, RoutedExperts } from "../../engines/index.ts";

/** `base_call_id`: the earlier call that has what comes before `start`. `missing`: why it is not known. */
export type SampledRouting = (RoutedExperts & { base_call_id: string | null }) | { missing: RoutingReason };

/** So many tokens at the beginning have their rows in an earlier call. */
export type RoutedBase = { call_id: string; length: number };

export type RoutedTokens = {
  facts: EngineFacts | null;
  told: RoutedExperts | null;
  /** The engine was not asked for an answer in one piece. */
  isStreamed: boolean;
  /** Prompt and sample. */
  tokens: number;
  /** The engine was asked to leave these out. */
  asked: RoutedBase | null;
  /** These are left out too. */
  known: RoutedBase | null;
};

/** null: the model has no experts, or it is not known to have any. */
export function sampledRouting({ facts, told, isStreamed, tokens, asked, known }: RoutedTokens): SampledRouting | null {
  if (told === null) {
    if (!facts?.experts && !facts?.routing) return null;
    return { missing: facts.routing && isStreamed ? "streamed" : "not_told" };
  }
  // Nothing is computed on the last token.
  if (told.start + told.rows !== tokens - 1 || !areExperts(told, facts?.experts ?? null)) return { missing: "misfit" };
  if (told.start !== (asked?.length ?? 0)) return { missing: "misfit" };
  // A record has one row at least.
  const start = Math.min(known?.length ?? 0, tokens - 2);
  return known !== null && start > told.start
    ? { ...withoutFirst(told, start - told.start), base_call_id: known.call_id }
    : { ...told, base_call_id: asked?.call_id ?? null };
}

/** A server may write -1 where it has no number. */
function areExperts({ bytes, dtype }: RoutedExperts, experts: number | null): boolean {
  const numbers = numbersOf(bytes, dtype);
  // A type without a sign is the smallest that holds the number of experts: up to 256 in a byte.
  const limit = experts ?? Number.POSITIVE_INFINITY;
  for (const one of numbers) if (one < 0 || one >= limit) return false;
  return true;
}

/** A copy: bytes of a larger buffer need not begin where a number may. */
function numbersOf(bytes: Buffer, dtype: RoutedExperts["dtype"]): Uint8Array | Uint16Array | Int32Array {
  if (dtype === "uint8") return bytes;
  const { buffer } = new Uint8Array(bytes);
  return dtype === "uint16" ? new Uint16Array(buffer) : new Int32Array(buffer);
}

function withoutFirst(told: RoutedExperts, count: number): RoutedExperts {
  const rowBytes = told.bytes.length / told.rows;
  return { ...told, start: told.start + count, rows: told.rows - count, bytes: told.bytes.subarray(count * rowBytes) };
}
