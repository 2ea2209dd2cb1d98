/**
 * What damaged lines of a log cost. A call without its request is lost. So is a call whose conversation is stored relative
 * to a lost list: half of an input would look like another input. A damaged call that keeps its request stays, with the
 * damage named, and is not trained. All other calls are unchanged.
 */
import type { Tool } from "../../base/schema/message.ts";
import type { DamagedLine } from "../../base/schema/session-log.ts";
import type { Fidelity } from "../../base/schema/trajectory.ts";
import type { CallHistory, CallParts } from "./call-history.ts";

export type Lost = Fidelity["damaged"][number];

type Whole = { parts: ReadonlyMap<string, CallParts>; damaged: readonly DamagedLine[]; tools: ReadonlyMap<string, Tool[]> };

/** How much of a kept call a later one may be stored after: its messages with its own, and its tokens; null where it has none. */
type StoredLengths = { messages: number; tokens: number | null };

/** `calls` in the order in which they were begun: a list is stored after an earlier one. */
export function withoutDamage(calls: CallHistory[], { parts, damaged, tools }: Whole): { calls: CallHistory[]; lost: Lost[] } {
  const lost: Lost[] = damaged
    .filter((line) => line.call_id === null)
    .map(({ reason }) => ({ call_id: null, reason, sampled_tokens: null }));
  for (const [call_id, { begun, finished, damage }] of parts)
    if (begun === null && (finished !== null || damage !== null))
      lost.push({
        call_id,
        reason: damage ?? "the log does not hold how it was begun",
        sampled_tokens: finished?.sampled_ids?.length ?? null,
      });
  const kept: CallHistory[] = [];
  const lengths = new Map<string, StoredLengths>();
  for (const call of calls) {
    const { call_id, begun } = call;
    const reason = whyCut(begun.messages, (base) => lengths.get(base)?.messages);
    if (reason !== null) {
      lost.push({ call_id, reason: call.damage ?? reason, sampled_tokens: call.finished?.sampled_ids?.length ?? null });
      continue;
    }
    call.damage ??=
      begun.tools_hash !== null && !tools.has(begun.tools_hash) ? `the log does not hold its tools ${begun.tools_hash}` : null;
    keepWhatIsWhole(call, lengths);
    lengths.set(call_id, lengthsOf(call));
    call.rank = kept.push(call) - 1;
    if (call.damage !== null) lost.push({ call_id, reason: call.damage, sampled_tokens: null });
  }
  return { calls: kept, lost };
}

/** A prompt that continues lost tokens is unknown; the call's messages and samples are not. */
function keepWhatIsWhole(call: CallHistory, lengths: ReadonlyMap<string, StoredLengths>): void {
  const { finished } = call;
  const reason = finished?.prompt_ids ? whyCut(finished.prompt_ids, (base) => lengths.get(base)?.tokens ?? undefined) : null;
  if (!finished || reason === null) return;
  call.damage ??= reason;
  call.finished = { ...finished, prompt_ids: null };
}

function whyCut(
  { base_call_id, base_len }: { base_call_id: string | null; base_len: number },
  lengthOf: (base: string) => number | undefined,
) {
  if (base_call_id === null || base_len <= (lengthOf(base_call_id) ?? 0)) return null;
  return `it goes on from ${base_len} entries of call ${base_call_id}, which the log does not hold`;
}

function lengthsOf({ begun, finished }: CallHistory): StoredLengths {
  const prompt = finished?.prompt_ids;
  return {
    messages: begun.messages.base_len + begun.messages.new.length + (finished?.message ? 1 : 0),
    tokens: prompt ? prompt.base_len + prompt.new.length + (finished?.sampled_ids?.length ?? 0) : null,
  };
}
