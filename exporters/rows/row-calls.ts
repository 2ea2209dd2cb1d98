/** The calls and messages that lie behind a row's tokens. */

import type { Message, Tool } from "../../base/schema/message.ts";
import type { CallRecord, Trajectory } from "../../base/schema/trajectory.ts";
import { type FlatRow, turnsOf } from "../../reconstruct/index.ts";

/** The calls with samples on the row's path, in order. */
export function callsOfRow(row: FlatRow, trajectory: Trajectory): CallRecord[] {
  const calls = new Map(trajectory.calls.map((call) => [call.call_id, call]));
  return turnsOf(row).flatMap(({ call_id }) => calls.get(call_id) ?? []);
}

/** How many calls have tokens that this row trains. */
export function trainedCalls(row: FlatRow): number {
  return new Set(row.segments.filter((segment) => segment.trainable).map((segment) => segment.call_id)).size;
}

/** The context of the call, without its own turn. */
export function inputOf(call: CallRecord, trajectory: Trajectory): Message[] {
  return call.input.flatMap((id) => trajectory.messages[id] ?? []);
}

export function outputOf(call: CallRecord, trajectory: Trajectory): Message[] {
  return call.output === null ? [] : [trajectory.messages[call.output] ?? []].flat();
}

export function toolsOf(call: CallRecord | undefined, trajectory: Trajectory): Tool[] {
  return call === undefined || call.tools_hash === null ? [] : (trajectory.tools[call.tools_hash] ?? []);
}

/** User, assistant and tool turns of the row's conversation; null where no call of it is known. */
export function turnCount(calls: CallRecord[], trajectory: Trajectory): number | null {
  const last = calls.at(-1);
  if (last === undefined) return null;
  return inputOf(last, trajectory).filter(({ role }) => role !== "system" && role !== "developer").length + 1;
}
