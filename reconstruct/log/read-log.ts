/**
 * A session log, gathered by call. The order of the entries does not matter, only the times and ordinals in them: a
 * log may come from a killed process, from two files joined, or from a store that returns them as it likes.
 */
import { AlidadeError } from "../../base/errors.ts";
import type { Tool } from "../../base/schema/message.ts";
import { withBase } from "../../base/schema/restored-turns.ts";
import type { RewardComponent } from "../../base/schema/reward-component.ts";
import type { Compared, DamagedLine, LogLine, Opened, ReplayEnded, Resumed } from "../../base/schema/session-log.ts";
import type { CallHistory, CallParts } from "./call-history.ts";
import { type Lost, withoutDamage } from "./damage.ts";
import { ToolHistory } from "./tool-history.ts";

export type SessionHistory = {
  opened: Opened;
  /** In the order in which they were begun. */
  calls: CallHistory[];
  /** What the log holds no more. */
  lost: Lost[];
  tools: Map<string, Tool[]>;
  tool_history: ToolHistory;
  sealed_reason: string | null;
  /** Requests that were held against a record, and how the replay ended. */
  compared: Compared[];
  replay_ended: ReplayEnded | null;
  /** Where other processes went on with it. What was held against the record, and a seal, are of the last of them. */
  resumed: Resumed[];
  /** The newest revision wins. */
  rewarded: {
    revision: number;
    reward: number | null;
    components: Record<string, number | null>;
    scoped_components?: RewardComponent[];
  } | null;
};

export function readLog(entries: Iterable<LogLine>): SessionHistory {
  const log: Omit<SessionHistory, "opened" | "calls" | "lost"> & { opened: Opened | null } = {
    opened: null,
    tools: new Map(),
    tool_history: new ToolHistory(),
    sealed_reason: null,
    compared: [],
    replay_ended: null,
    resumed: [],
    rewarded: null,
  };
  const parts = new Map<string, CallParts>();
  const damaged: DamagedLine[] = [];
  const of = (callId: string) => getOrAdd(parts, callId, emptyParts);
  for (const entry of entries) {
    switch (entry.type) {
      case "opened":
        log.opened ??= entry;
        break;
      case "tools":
        log.tools.set(entry.tools_hash, entry.tools);
        break;
      case "call_begun":
        of(entry.call_id).begun ??= entry;
        break;
      case "tried":
        of(entry.call_id).tries.push(entry);
        break;
      case "call_finished":
        of(entry.call_id).finished ??= entry;
        break;
      case "decoded":
        of(entry.call_id).decoded.set(entry.parent_call_id, entry);
        break;
      case "answered":
      case "replayed":
        takeAnswer(of(entry.call_id), entry);
        break;
      case "tool_server":
      case "tool_begun":
      case "tool_finished":
        log.tool_history.take(entry);
        break;
      case "compared":
        log.compared.push(entry);
        break;
      case "replay_ended":
        log.replay_ended = entry;
        break;
      case "resumed":
        log.resumed.push(entry);
        Object.assign(log, { compared: [], replay_ended: null, sealed_reason: null });
        break;
      case "sealed":
        log.sealed_reason ??= entry.reason;
        break;
      case "rewarded":
        if (log.rewarded === null || entry.revision > log.rewarded.revision) log.rewarded = entry;
        break;
      case "refused":
        // Refused before it became a call: nothing was sampled.
        break;
      case "damaged":
        damaged.push(entry);
        if (entry.call_id !== null) of(entry.call_id).damage ??= entry.reason;
        break;
    }
  }
  if (log.opened === null) throw new AlidadeError("store_error", noOpened(damaged[0]));
  return { ...log, opened: log.opened, ...withoutDamage(inOrder(parts), { parts, damaged, tools: log.tools }) };
}

const emptyParts = (): CallParts => ({
  begun: null,
  finished: null,
  tries: [],
  decoded: new Map(),
  answered: null,
  complete: false,
  damage: null,
});

function noOpened(damaged: DamagedLine | undefined): string {
  return damaged?.reason ?? "The session log has no `opened` entry, so its session is unknown.";
}

function takeAnswer(parts: CallParts, entry: Extract<LogLine, { type: "answered" | "replayed" }>): void {
  if (entry.delivery === "complete") parts.complete = true;
  if (entry.type === "replayed") return;
  // Where a call was answered on two connections (a joined one), the answer that arrived is the one that counts.
  if (parts.answered === null || (entry.delivery === "complete" && parts.answered.delivery !== "complete")) parts.answered = entry;
}

/** Calls with a `call_begun` entry. */
function inOrder(parts: Map<string, CallParts>): CallHistory[] {
  const calls: CallHistory[] = [];
  for (const [call_id, { begun, ...rest }] of parts) if (begun !== null) calls.push({ ...rest, call_id, begun, rank: 0 });
  calls.sort(
    (a, b) =>
      a.begun.ordinal - b.begun.ordinal || a.begun.time - b.begun.time || (a.call_id < b.call_id ? -1 : a.call_id > b.call_id ? 1 : 0),
  );
  for (const [rank, call] of calls.entries()) {
    call.rank = rank;
    const base = parts.get(call.begun.messages.base_call_id ?? "")?.begun;
    // A base was begun before, so its own list is whole by now.
    call.begun = withBase(call.begun, base?.restored ?? []);
    getOrAdd(parts, call.call_id, emptyParts).begun = call.begun;
    call.tries.sort((a, b) => a.try - b.try);
  }
  return calls;
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
