/**
 * One LLM call, from the harness's request to its answer: parse, restore, match, admit, begin (durable), sample,
 * finish (durable), answer. In a session that replays, the record answers behind match, in the place of an engine. `http/harness-listener.ts` has resolved whose request it is.
 */

import type { AlidadeError } from "../../base/errors.ts";
import type { NeutralRequest } from "../../base/schema/message.ts";
import type { CallLabels } from "../dialects/index.ts";
import type { Exchange } from "../http/exchange.ts";
import { fromRecord, placeRequest, type ReplayedRequest } from "../replay/from-record.ts";
import { enginesOf } from "../replay/recording.ts";
import { continueFrom } from "../restore/continue-from.ts";
import { match } from "../restore/match.ts";
import { type RestoreResult, restore } from "../restore/restore.ts";
import { believedLabels } from "../sandboxed/believed-labels.ts";
import { assertImagesInside } from "../sandboxed/sandboxed-request.ts";
import type { CallRun } from "../session/call-run.ts";
import type { Session } from "../session/session.ts";
import { admit, assertLogHasRoom } from "./admit.ts";
import { answer } from "./answer.ts";
import { begin } from "./begin.ts";
import { choicesOf } from "./choices.ts";
import { finish } from "./finish.ts";
import type { GenerationResult } from "./generation.ts";
import { givenLabel, givenPlace } from "./given-place.ts";
import { type IdentifiedRequest, identify } from "./identify.ts";
import { keepPictures } from "./keep-pictures.ts";
import { parse } from "./parse.ts";
import { type KnownRequest, refuse } from "./refuse.ts";
import type { Relayed } from "./relay.ts";
import { type CallWork, sampleCall } from "./sample-call.ts";
import type { CallSurroundings } from "./surroundings.ts";

/** Answers one request of a harness. Never throws: what goes wrong is answered, written down and reported. */
export function handleCall(session: Session, exchange: Exchange, around: CallSurroundings): Promise<void> {
  return session.running.answering(handleAll(session, exchange, around));
}

/** Answers a request with an unreadable body like one that the dialect refuses. Never throws. */
export function refuseCall(session: Session, exchange: Exchange, error: AlidadeError, around: CallSurroundings): Promise<void> {
  return session.running.answering(refuse(session, { call: null, labels: null, parent: null }, exchange, error, around));
}

/**
 * A request for several samples is as many calls. One begins when the one before it is in the log, which then holds their
 * conversation once; a refused one is the last.
 */
async function handleAll(session: Session, exchange: Exchange, around: CallSurroundings): Promise<void> {
  const answers: Promise<void>[] = [];
  for (const choice of await choicesOrRefuse(session, exchange, around)) {
    if (answers.length > 0 && exchange.isClosed) break;
    const taken = await take(session, choice, around);
    if (taken === null) break;
    answers.push(taken.answered);
  }
  await Promise.all(answers);
}

async function choicesOrRefuse(session: Session, exchange: Exchange, around: CallSurroundings): Promise<Exchange[]> {
  try {
    return choicesOf(session, exchange);
  } catch (error) {
    await refuse(session, { call: null, labels: null, parent: null }, exchange, error, around);
    return [];
  }
}

/** Resolves when its call is in the log, with what resolves when it is answered; null where it was refused. Never throws. */
async function take(session: Session, exchange: Exchange, around: CallSurroundings): Promise<{ answered: Promise<void> } | null> {
  const known: KnownRequest = { call: null, labels: null, parent: null };
  try {
    session.assertOpen();
    assertLogHasRoom(session);
    const request = await parse(session, exchange, around.network);
    const labels = labelsOf(session, exchange);
    known.labels = labels;
    await around.pool.lookFor({ session, model: request.model, ...labels }, exchange.signal);
    const restored = restoreTurns(session, labels, request);
    known.parent = restored.parent;
    const asked = { dialect: exchange.dialect.name, labels, request, sent: restored };
    const replayed = placeRequest(session, asked);
    const identified = await identify(session, exchange, replayed ? replayed.found : { request, labels, restored });
    const found = await findOrBegin(session, exchange, { identified, replayed }, around);
    known.call = found.call;
    exchange.bytes.release();
    const { stream } = request;
    const answering = answer(
      session,
      found,
      exchange,
      { ...found, stream, relay: session.spec.relay, keepAliveMs: around.keepAliveMs },
      around,
    );
    return { answered: answering.catch((error: unknown) => refuse(session, known, exchange, error, around)) };
  } catch (error) {
    await refuse(session, known, exchange, error, around);
    return null;
  }
}

function labelsOf({ spec }: Session, { dialect, headers, body }: Exchange): CallLabels {
  const said = believedLabels(spec, dialect.labels(headers, body as Record<string, unknown>));
  const given = Object.entries(givenPlace(spec, headers, body).labels);
  return { ...said, labels: { ...said.labels, ...Object.fromEntries(given.map(([name, value]) => [`${givenLabel}${name}`, value])) } };
}

function restoreTurns(session: Session, labels: CallLabels, request: NeutralRequest): RestoreResult {
  const restored = continueFrom(session, request, restore(session, session.sent.recall(labels.agent, request.messages)));
  if (session.spec.sandboxed) assertImagesInside(restored.messages);
  const messages = keepPictures(session, restored.messages);
  if (!isSumming(labels)) session.sight.look(request.messages, messages);
  return { ...restored, messages };
}

/** A summary of the conversation leaves its pictures out. The harness says so itself; a false word only skips one check. */
function isSumming({ request_class, labels }: CallLabels): boolean {
  return ["compaction", "summary"].includes(labels.read_as ?? request_class);
}

type FoundCall = Relayed & { isReplay: boolean };

/**
 * Resolves when it is in the log that the call was begun. From `match` until it runs nothing waits, so that equal requests see
 * each other; those of a replay have taken their places before.
 */
async function findOrBegin(
  session: Session,
  exchange: Exchange,
  { identified, replayed }: { identified: IdentifiedRequest; replayed: ReplayedRequest | null },
  around: CallSurroundings,
): Promise<FoundCall> {
  const matched = await match(session, identified.fingerprint, exchange);
  session.assertOpen();
  const placed = replayed?.found.placed ?? null;
  if (matched.type !== "new" && placed) replayed?.replay.release(placed, matched.type === "join" ? matched.run.call : matched.call);
  if (matched.type === "replay") return { call: matched.call, run: null, isReplay: true };
  if (matched.type === "join") return joined(matched.run);
  const recorded = replayed && (await fromRecord(session, exchange, identified, replayed));
  if (recorded) return { call: recorded, run: null, isReplay: true };
  session.assertOpen();
  // What goes on with its own record continues its own tokens, as any other call does.
  const beside = replayed && placed && !replayed.replay.isOwn ? { replay: replayed.replay, recorded: placed.recorded } : null;
  const admitted = admit(session, identified, matched.retryOf, around.pool, beside ? enginesOf(beside.recorded) : []);
  const { run, bases } = begin(session, exchange, identified, admitted);
  run.follow(perform(session, { run, bases, identified, admitted, beside }, around));
  await run.recorded;
  return { call: run.call, run, isReplay: false };
}

/** A call that is under way, or that could not be written down until now. */
async function joined(run: CallRun): Promise<FoundCall> {
  await run.recorded;
  run.saveAgain();
  return { call: run.call, run, isReplay: true };
}

/** From the durable beginning to the durable end. Rejects with the call's failure, or the store's. */
async function perform(session: Session, work: CallWork, around: CallSurroundings): Promise<void> {
  const { run } = work;
  let result: GenerationResult;
  try {
    result = await sampleCall(session, work, around);
  } catch (error) {
    run.drop();
    throw error;
  }
  await run.sampled(() => finish(session, run, result, around));
}
