/** Where a recording is cut: which of its calls are answered from it, and which place is sampled anew. */
import { AlidadeError } from "../../base/errors.ts";
import { isWork } from "./is-work.ts";
import type { RecordedCall, SessionRecording } from "./recording.ts";

export type Cut = {
  /** Ids of calls whose answers are given. */
  answered: ReadonlySet<string>;
  /** The recorded request behind them; null: there is none. */
  next: RecordedCall | null;
  /** The last turn that is answered; null: none is. */
  last: RecordedCall | null;
  /** Ids of other calls that are sampled anew at their recorded requests. */
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
 * Behind this turn, as `alidade show` numbers them; null: behind all of them. Throws `request_invalid` for a number that is no
 * turn of the main agent, and in the middle of calls that ran side by side.
 */
export function cutAfter(recording: SessionRecording, turn: number | null): Cut {
  const { calls, main } = recording;
  const ended = calls.filter(({ call }) => call.turn !== null);
  const isOfMain = ({ call }: RecordedCall): boolean => main.has(call.id);
  const open = new Set<string>();
  if (turn === null) return { answered: idsOf(ended), next: null, last: ended.findLast(isOfMain) ?? null, open };
  const last = turn === 0 ? null : turnNamed(recording, turn);
  const next = last === null ? (calls.find(isOfMain) ?? null) : nextOf(calls.filter(isOfMain), last);
  if (next !== null) assertNoneBeside(recording, next, turn);
  const before = ended.filter(({ number }) => next === null || number < next.number);
  return { answered: idsOf(before), next, last, open };
}

/** Tells whether the call is answered from the record. Finished side calls (titles, topics) are, whatever turn they come after. */
export function isAnswered({ answered }: Cut, { call }: RecordedCall): boolean {
  return answered.has(call.id) || (call.turn !== null && !isWork(call.begun.request_class));
}

/** The turns behind which a rollout can be sampled anew: those of the main agent beside which no other call ran. 0: its beginning. */
export function turnsToForkAt(recording: SessionRecording): number[] {
  return [0, ...turnsOfMain(recording)].filter((turn) => {
    try {
      return cutAfter(recording, turn).next !== null;
    } catch (error) {
      if (error instanceof AlidadeError) return false;
      throw error;
    }
  });
}

/** The numbers of the main agent's finished turns. */
export function turnsOfMain({ calls, main }: SessionRecording): number[] {
  return calls.filter(({ call }) => call.turn !== null && main.has(call.id)).map(({ number }) => number);
}

function turnNamed(recording: SessionRecording, turn: number): RecordedCall {
  const { calls, main } = recording;
  const found = calls[turn - 1];
  const turns = turnsOfMain(recording);
  const known = turns.length > 0 ? `its turns are ${turns.join(", ")}` : "it has no turn";
  if (found === undefined) throw wrongTurn(`there is no turn ${turn}: ${known}`);
  if (found.call.turn === null) throw wrongTurn(`turn ${turn} has no answer, because its call failed: ${known}`);
  if (!main.has(found.call.id)) throw wrongTurn(`turn ${turn} is ${kindOf(found)}, and no turn of the main agent: ${known}`);
  return found;
}

/** The call that goes on from this turn, or the main agent's next one where its history was written anew. */
function nextOf(callsOfMain: readonly RecordedCall[], last: RecordedCall): RecordedCall | null {
  const later = callsOfMain.filter((one) => one.number > last.number);
  const children = later.filter(({ call }) => call.begun.parent_call_id === last.call.id);
  return children.find(({ call }) => call.turn !== null) ?? children[0] ?? later[0] ?? null;
}

/** A sub-agent that has not ended there could not be put back to where it was. */
function assertNoneBeside({ calls, main, roots }: SessionRecording, next: RecordedCall, turn: number): void {
  const work = calls.filter(({ call }) => isWork(call.begun.request_class) && call.begun.retry_of === null);
  const running = work.find(({ endedAt, number }) => number < next.number && (endedAt ?? Infinity) > next.begunAt);
  const before = new Set(work.filter(({ number }) => number < next.number).map(({ call }) => roots.get(call.id)));
  const open = work.find(({ call, number }) => number > next.number && !main.has(call.id) && before.has(roots.get(call.id)));
  const beside = running ?? open;
  if (beside === undefined) return;
  throw wrongTurn(`turn ${turn} is in the middle of calls that ran side by side (turn ${beside.number} of ${whoseIs(beside, main)})`);
}

function wrongTurn(message: string): AlidadeError {
  return new AlidadeError("request_invalid", message, { param: "turn" });
}

function kindOf({ call: { begun } }: RecordedCall): string {
  if (begun.agent !== "main") return `of the agent ${begun.agent}`;
  return isWork(begun.request_class) ? "of a conversation beside the main agent's" : `a call of the kind ${begun.request_class}`;
}

function whoseIs({ call: { id, begun } }: RecordedCall, main: ReadonlySet<string>): string {
  return begun.agent !== "main" || main.has(id) ? begun.agent : "another conversation";
}

function idsOf(calls: readonly RecordedCall[]): Set<string> {
  return new Set(calls.map(({ call }) => call.id));
}
