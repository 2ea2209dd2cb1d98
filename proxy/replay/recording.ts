/** A session's log, read to be answered from once more: its calls whole, with the entries that a copy of them needs. */
import { AlidadeError } from "../../base/errors.ts";
import type { Tool } from "../../base/schema/message.ts";
import type { CallFinished, LogLine, Opened, Tried } from "../../base/schema/session-log.ts";
import type { Call } from "../session/call.ts";
import { SessionState } from "../session/session-state.ts";
import { agentsOf, type RecordedAgents } from "./recorded-agents.ts";
import { type ClockMark, clockMarkOf } from "./recorded-clock.ts";

export type RecordedCall = {
  call: Call;
  /** From 1, in the order in which they were begun, as `alidade show` numbers them. */
  number: number;
  /** Where the log says that it was begun, and that it had ended: places among its lines. `endedAt`: null, as `finished`. */
  begunAt: number;
  endedAt: number | null;
  tries: readonly Tried[];
  /** null: it is not known what came of it. */
  finished: CallFinished | null;
};

export type SessionRecording = RecordedAgents & {
  opened: Opened;
  /** In the order in which they were begun. */
  calls: readonly RecordedCall[];
  tools: ReadonlyMap<string, readonly Tool[]>;
  /** Where the session's clock stood still, and where it went on. */
  clock: readonly ClockMark[];
};

/** Throws `not_found` where the log is gone, and `store_error` where lines of it are damaged. */
export function toRecording(sessionId: string, lines: readonly LogLine[]): SessionRecording {
  const [opened, ...rest] = lines;
  if (opened === undefined)
    throw new AlidadeError("not_found", `the log of session ${sessionId} is not there any more: it cannot be replayed`);
  const damaged = lines.find((line) => line.type === "damaged");
  if (damaged?.type === "damaged" || opened.type !== "opened")
    throw new AlidadeError("store_error", `the log of session ${sessionId} is damaged, so it cannot be replayed: ${reasonOf(damaged)}`);
  const state = new SessionState(opened);
  const tries = new Map<string, Tried[]>();
  const finished = new Map<string, CallFinished>();
  const begunAt = new Map<string, number>();
  const endedAt = new Map<string, number>();
  for (const [place, line] of rest.entries()) {
    // A seal empties the tables.
    if (line.type !== "sealed") state.apply(line);
    if (line.type === "tried") tries.set(line.call_id, [...(tries.get(line.call_id) ?? []), line]);
    else if (line.type === "call_begun") begunAt.set(line.call_id, place);
    else if (line.type === "call_finished") {
      finished.set(line.call_id, line);
      endedAt.set(line.call_id, place);
    }
  }
  const calls = [...state.calls.values()].map((call, index) => ({
    call,
    number: index + 1,
    begunAt: begunAt.get(call.id) ?? 0,
    endedAt: endedAt.get(call.id) ?? null,
    tries: tries.get(call.id) ?? [],
    finished: finished.get(call.id) ?? null,
  }));
  return { opened, calls, tools: state.tools, clock: rest.flatMap(clockMarkOf), ...agentsOf(calls) };
}

/** Returns the engines that got this call's prompt, the last one first. */
export function enginesOf({ tries }: RecordedCall): string[] {
  return tries.flatMap(({ engine_name }) => (engine_name === null ? [] : [engine_name])).reverse();
}

/** Calls that have an answer, and the tokens that were sampled here for them. */
export function countFinished({ calls }: SessionRecording): { calls: number; sampled_tokens: number } {
  const finished = calls.flatMap(({ call, finished }) => (call.turn && finished && finished.replayed_from === undefined ? [finished] : []));
  const tokens = finished.map(({ sampled_ids, usage }) => sampled_ids?.length ?? usage.sampled_tokens ?? 0);
  return { calls: finished.length, sampled_tokens: tokens.reduce((sum, count) => sum + count, 0) };
}

function reasonOf(damaged: LogLine | undefined): string {
  return damaged?.type === "damaged" ? damaged.reason : "it does not begin with `opened`";
}
