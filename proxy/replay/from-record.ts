/** The step between match and sample: a request at a recorded place is answered from the record, or sampled on the recorded prompt. */
import { AlidadeError } from "../../base/errors.ts";
import type { LogEntry } from "../../base/schema/session-log.ts";
import type { IdentifiedRequest } from "../calls/identify.ts";
import type { Exchange } from "../http/exchange.ts";
import type { Call } from "../session/call.ts";
import type { Session } from "../session/session.ts";
import { copyCall } from "./copy-call.ts";
import { isWork } from "./is-work.ts";
import type { PlacedRequest, Replay, ReplayRequest } from "./replay.ts";

/** A request of a session that replays: as it was sent, and as it was placed. */
export type ReplayedRequest = { replay: Replay; asked: ReplayRequest; found: PlacedRequest };

/** null: the session replays nothing. Waits for nothing, so that two equal requests take two places. */
export function placeRequest(session: Session, asked: ReplayRequest): ReplayedRequest | null {
  const { replay } = session;
  return replay && { replay, asked, found: replay.place(asked) };
}

/**
 * The call whose answer is given; null where an engine is asked. Throws `replay_diverged` where the record does not have the
 * request, and `session_sealed` behind the end of a replay that samples nothing.
 */
export async function fromRecord(
  session: Session,
  exchange: Exchange,
  identified: IdentifiedRequest,
  { replay, asked, found }: ReplayedRequest,
): Promise<Call | null> {
  const why = replay.whyDiverged(found, asked);
  const { placed } = found;
  if (why !== null) {
    const entries = [replay.compared(placed, why), replay.end("diverged", why)];
    await session.record(entries.filter((entry): entry is LogEntry & { type: "compared" | "replay_ended" } => entry !== null));
    replay.stop();
    throw new AlidadeError("replay_diverged", `the replay left its record: ${why}`);
  }
  if (placed?.isAnswered) {
    await replay.untilDue(placed, exchange.signal);
    assertGoesOn(session, replay);
    // It may come again, and finds its place free. Meanwhile others do not wait for it.
    if (exchange.signal.aborted) {
      replay.giveBack(placed);
      replay.given(placed);
      throw new AlidadeError("cancelled", "the client left before its recorded answer was due");
    }
    void exchange.closed.then(() => replay.given(placed));
    const recorded = replay.answerOf(placed);
    const call = replay.isOwn
      ? givenAgain(session, exchange, recorded.call.id)
      : await copyCall(session, exchange, identified, recorded, replay.clockOf(placed));
    await session.record(replay.compared(placed, null));
    if (replay.hasGivenAll) await arrive(session, replay);
    return call;
  }
  if (placed !== null) await session.record(replay.compared(placed, null));
  const isTurn = isWork(identified.labels.request_class);
  if (isTurn && !replay.isOwn) {
    await replay.untilEnd(found, exchange.signal);
    assertGoesOn(session, replay);
    // It may come again, and brings the replay to no end.
    if (exchange.signal.aborted) {
      if (placed !== null) replay.giveBack(placed);
      throw new AlidadeError("cancelled", "the client left before the replay came to its end");
    }
  }
  // A sub-agent may be further than another one whose recorded answers are still to be given.
  if (isTurn && (!replay.isOwn || replay.hasGivenAll)) {
    await arrive(session, replay);
    if (replay.stops) replay.stop();
  }
  if (replay.stops) throw new AlidadeError("session_sealed", "the replay is over: nothing is sampled behind it");
  return null;
}

/** Throws if the session is over by now, or if the replay has left its record. */
function assertGoesOn(session: Session, replay: Replay): void {
  session.assertOpen();
  replay.assertOnRecord();
}

/** The session's own call, whose answer its client did not live to use. */
function givenAgain(session: Session, exchange: Exchange, callId: string): Call {
  const call = session.call(callId) as Call;
  session.running.join(call, exchange);
  return call;
}

/** What comes now is sampled, or was not recorded. */
async function arrive(session: Session, replay: Replay): Promise<void> {
  const entry = replay.end("arrived", null);
  if (entry !== null) await session.record(entry);
}
