/** Where a recording is cut: which of its calls are answered from it, and which place is sampled anew. */
import { AlidadeError } from "../../base/errors.ts";
import { isWork } from "./is-work.ts";
import { mainTurnsOf } from "./main-turns.ts";
import type { RecordedCall, SessionRecording } from "./recording.ts";

export type Cut = {
  /** Ids of calls whose answers are given. */
  answered: ReadonlySet<string>;
  /** The recorded request behind them; null: there is none. */
  next: RecordedCall | null;
  /** The last turn that is answered; null: none is. */
  last: RecordedCall | null;
  /** Ids of calls of other conversations that were being sampled there: they are sampled anew at their recorded requests. */
  open: ReadonlySet<string>;
};

/**
 * Cuts where the process of the session died or was stopped. Finished calls are answered from the record. Calls that were being sampled
 * are sampled anew. If a request was repeated, its last try counts.
 */
export function cutAtDeath({ calls }: SessionRecording): Cut {
  const repeated = new Set(calls.map(({ call }) => call.begun.retry_of));
  const open = calls.filter(({ call }) => isCutOff(call) && !repeated.has(call.id));
  return { answered: idsOf(calls.filter(({ call }) => call.turn !== null)), next: null, last: null, open: idsOf(open) };
}

/** True if the call brought no result, because its process died or ended its session. */
function isCutOff({ outcome }: RecordedCall["call"]): boolean {
  return outcome === null || outcome.error?.code === "cancelled";
}

/**
 * Behind this turn, as `alidade show` numbers them; null: behind all of them. Sub-agents are cut where they were when the main agent
 * asked for its next turn. Throws `request_invalid` for a number that is no turn of the main agent, and in the middle of calls that it
 * made side by side.
 */
export function cutAfter(recording: SessionRecording, turn: number | null): Cut {
  const { calls, main } = recording;
  const ended = calls.filter(({ call }) => call.turn !== null);
  const none = new Set<string>();
  if (turn === null)
    return { answered: idsOf(ended), next: null, last: ended.findLast(({ call }) => main.has(call.id)) ?? null, open: none };
  const turns = mainTurnsOf(recording);
  const last = turn === 0 ? null : turnNamed(recording, turn);
  const next = turns.nextOf(last);
  if (next === null) return { answered: idsOf(ended), next, last, open: none };
  const beside = turns.callsBeside(next);
  assertNotBesideItself(recording, beside, turn);
  const before = ended.filter(({ endedAt }) => endedAt !== null && endedAt < next.begunAt);
  return { answered: idsOf(before), next, last, open: idsOf(beside) };
}

/** Tells whether the call is answered from the record. Finished side calls (titles, topics) are, whatever turn they come after. */
export function isAnswered({ answered }: Cut, { call }: RecordedCall): boolean {
  return answered.has(call.id) || (call.turn !== null && !isWork(call.begun.request_class));
}

/** A turn of the main agent, and the recorded call behind it. */
export type PlaceToFork = { turn: number; next: RecordedCall };

/** The turns behind which a rollout can be sampled anew: those of the main agent beside which it made no other call. 0: its beginning. */
export function placesToForkAt(recording: SessionRecording): PlaceToFork[] {
  const turns = mainTurnsOf(recording);
  return [null, ...turns.finished].flatMap((last) => {
    const next = turns.nextOf(last);
    if (next === null || ownBeside(recording, turns.callsBeside(next)) !== undefined) return [];
    return [{ turn: last?.number ?? 0, next }];
  });
}

export function turnsToForkAt(recording: SessionRecording): number[] {
  return placesToForkAt(recording).map(({ turn }) => turn);
}

/** The numbers of the main agent's finished turns. */
export function turnsOfMain(recording: SessionRecording): number[] {
  return mainTurnsOf(recording).finished.map(({ number }) => number);
}

function turnNamed(recording: SessionRecording, turn: number): RecordedCall {
  const { calls, main } = recording;
  const found = calls[turn - 1];
  if (found?.call.turn && main.has(found.call.id)) return found;
  const turns = turnsOfMain(recording);
  const known = turns.length > 0 ? `its turns are ${turns.join(", ")}` : "it has no turn";
  if (found === undefined) throw wrongTurn(`there is no turn ${turn}: ${known}`);
  if (found.call.turn === null) throw wrongTurn(`turn ${turn} has no answer, because its call failed: ${known}`);
  throw wrongTurn(`turn ${turn} is ${kindOf(found)}, and no turn of the main agent: ${known}`);
}

/** The main agent is put back to one place. If it asks for several turns at once, there is none. */
function assertNotBesideItself(recording: SessionRecording, beside: readonly RecordedCall[], turn: number): void {
  const own = ownBeside(recording, beside);
  if (own === undefined) return;
  throw wrongTurn(`turn ${turn} is in the middle of calls that the main agent made side by side (turn ${own.number})`);
}

function ownBeside({ main }: SessionRecording, beside: readonly RecordedCall[]): RecordedCall | undefined {
  return beside.find(({ call }) => main.has(call.id));
}

function kindOf({ call: { begun } }: RecordedCall): string {
  if (begun.agent !== "main") return `of the agent ${begun.agent}`;
  return isWork(begun.request_class) ? "of a conversation beside the main agent's" : `a call of the kind ${begun.request_class}`;
}

function wrongTurn(message: string): AlidadeError {
  return new AlidadeError("request_invalid", message, { param: "turn" });
}

function idsOf(calls: readonly RecordedCall[]): Set<string> {
  return new Set(calls.map(({ call }) => call.id));
}
