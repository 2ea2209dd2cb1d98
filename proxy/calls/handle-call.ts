/**
 * One LLM call, from the harness's request to its answer: parse, restore, match, admit, begin (durable), sample,
 * finish (durable), answer. Each step lives in its own file.
 */
import type { CallLabels } from "../../dialects/dialect.ts";
import { type AlidadeError, asAlidadeError } from "../../errors.ts";
import { newId } from "../../schema/ids.ts";
import type { NeutralRequest } from "../../schema/message.ts";
import { withoutBase } from "../../schema/restored-turns.ts";
import type { CallFinished, ErrorRecord } from "../../schema/session-log.ts";
import { isFull } from "../../store/index.ts";
import type { Continuity } from "../continuity/continuity.ts";
import type { Exchange } from "../http/exchange.ts";
import type { EnginePool } from "../pool/engine-pool.ts";
import type { Wish } from "../pool/own-model.ts";
import { continueFrom } from "../restore/continue-from.ts";
import { fingerprintOf } from "../restore/fingerprint.ts";
import { match } from "../restore/match.ts";
import { type RestoreResult, restore } from "../restore/restore.ts";
import { believedLabels } from "../sandboxed/believed-labels.ts";
import type { Network } from "../sandboxed/fetch-image.ts";
import { withImagesInside } from "../sandboxed/images-inside.ts";
import { assertImagesInside, assertOpenParameters } from "../sandboxed/sandboxed-request.ts";
import { assertReferencesInside } from "../sandboxed/schema-references.ts";
import { withoutGrammar } from "../sandboxed/without-grammar.ts";
import type { Session } from "../session/session.ts";
import { sessionRecord } from "../session/session-record.ts";
import { messageDelta, storageBases } from "../session/storage-base.ts";
import { assertLogHasRoom, assertWithinBudgets, effectiveSampling, mainTurn } from "./admit.ts";
import { sampledBudget, wallClock } from "./budget-watch.ts";
import { Call } from "./call.ts";
import { decodeDifference } from "./decode-difference.ts";
import { toErrorRecord } from "./error-record.ts";
import { Generation, type GenerationResult } from "./generation.ts";
import { noteRead } from "./note-read.ts";
import { recordFinished } from "./record-finished.ts";
import { relay } from "./relay.ts";

/** What the call needs of the proxy around it. */
export type CallSurroundings = {
  pool: EnginePool;
  continuity: Continuity;
  /** Where images of sandboxed sessions are fetched from; absent: the public internet. */
  network?: Network | undefined;
  /** How often a waiting client is shown a sign of life. */
  keepAliveMs?: number | undefined;
  onError(error: unknown, what: string): void;
};

/** Answers one request of a harness. Never throws: what goes wrong is answered, written down and reported. */
export function handleCall(session: Session, exchange: Exchange, around: CallSurroundings): Promise<void> {
  return waitedFor(session, handle(session, exchange, around));
}

/** Answers a request with an unreadable body like one that the dialect refuses. Never throws. */
export function refuseCall(session: Session, exchange: Exchange, error: AlidadeError, around: CallSurroundings): Promise<void> {
  return waitedFor(session, refuse(session, { call: null, labels: null, parent: null }, exchange, error, around));
}

/** A seal waits for it: how an answer ended is part of the log. */
export async function waitedFor(session: Session, answering: Promise<void>): Promise<void> {
  session.answering.add(answering);
  try {
    await answering;
  } finally {
    session.answering.delete(answering);
  }
}

/** How far a request got. */
type KnownRequest = { call: Call | null; labels: CallLabels | null; parent: Call | null };

async function handle(session: Session, exchange: Exchange, around: CallSurroundings): Promise<void> {
  const known: KnownRequest = { call: null, labels: null, parent: null };
  try {
    session.assertOpen();
    assertLogHasRoom(session);
    const request = await admitted(session, exchange, around);
    const labels = believedLabels(session.spec, exchange.dialect.labels(exchange.headers, exchange.body as Record<string, unknown>));
    known.labels = labels;
    const restored = continueFrom(session, request, restore(session, session.sentBefore.recall(labels.agent, request.messages)));
    known.parent = restored.parent;
    if (session.spec.sandboxed) assertImagesInside(restored.messages);
    const found = await findOrBegin(session, exchange, { request, labels, restored }, around);
    known.call = found.call;
    exchange.bytes.release();
    await answer(
      session,
      found.call,
      exchange,
      found.replayed,
      { stream: request.stream, relay: session.spec.relay, keepAliveMs: around.keepAliveMs },
      around,
    );
  } catch (error) {
    await refuse(session, known, exchange, error, around);
  }
}

/** The request, as far as its client may ask for it. */
async function admitted(session: Session, exchange: Exchange, { network }: CallSurroundings): Promise<NeutralRequest> {
  const read = new Set<Call>();
  const record = sessionRecord(session, exchange.dialect, (call) => read.add(call));
  const request = exchange.dialect.parse(exchange.body, exchange.headers, record);
  await noteRead(session, read);
  if (!session.spec.sandboxed) return request;
  assertOpenParameters(session.spec, request);
  assertReferencesInside(request);
  return { ...request, messages: await withImagesInside(session, request.messages, exchange.signal, network) };
}

type ParsedRequest = { request: NeutralRequest; labels: CallLabels; restored: RestoreResult };
type FoundCall = { call: Call; replayed: boolean };

async function findOrBegin(
  session: Session,
  exchange: Exchange,
  { request, labels, restored }: ParsedRequest,
  around: CallSurroundings,
): Promise<FoundCall> {
  const passed = withoutGrammar(session.spec, request);
  const { tools, hash: toolsHash } = await session.rememberTools(passed.tools);
  const fingerprint = fingerprintOf({
    dialect: exchange.dialect.name,
    agent: labels.agent,
    request,
    messages: restored.messages,
    toolsHash,
  });
  const matched = await match(session, fingerprint, exchange);
  session.assertOpen();
  if (matched.type === "replay") return { call: matched.call, replayed: true };
  if (matched.type === "join") return { call: await joined(matched.call), replayed: true };

  // From here to `session.add` nothing waits, so that concurrent calls cannot both take the last of a budget.
  // What a spent budget cut is no failure of an engine: to ask for it again is to ask for more.
  const isRepetition = matched.retryOf !== null && matched.retryOf.finished?.error?.code !== "budget_spent";
  assertWithinBudgets(session, Date.now(), isRepetition);
  const wish = { session, model: request.model, agent: labels.agent, request_class: labels.request_class };
  const slot = around.pool.choose(wish);
  const turn = mainTurn(session, labels.agent, labels.request_class, matched.retryOf);
  const sampling = effectiveSampling(request.sampling, session.spec, turn);
  const bases = storageBases(session, restored.parent, labels.agent);
  const { delta, whole } = messageDelta(bases, restored.messages);
  const call = new Call(
    {
      type: "call_begun",
      time: Date.now(),
      call_id: newId("call"),
      ordinal: session.callCount,
      dialect: exchange.dialect.name,
      ...labels,
      model: request.model,
      stream: request.stream,
      messages: delta,
      ...(request.prompt && { prompt: request.prompt }),
      fingerprint,
      restored: restored.restored,
      parent_call_id: restored.parent?.id ?? request.compacted_in ?? null,
      retry_of: matched.retryOf?.id ?? null,
      tools_hash: toolsHash,
      tool_choice: passed.tool_choice,
      ...(passed.withheld && { withheld: passed.withheld }),
      requested_sampling: request.sampling,
      effective_sampling: sampling,
      policy: slot.policy,
      role_mapping: slot.facts.role_mapping,
      native: request.native,
    },
    whole,
  );
  // In the tables before it is durable, so that two equal requests at once see each other and each other's client.
  call.connections.add(exchange);
  session.add(call);
  session.inFlight.add(call);
  call.recorded = begin(session, call);
  call.settled = perform(session, call, { request: { ...request, tools }, wish, bases }, around);
  // A client that has left does not listen to it, and the failure is on the record.
  call.settled.catch(() => undefined);
  await call.recorded;
  return { call, replayed: false };
}

/** Writes down that it was begun. */
async function begin(session: Session, call: Call): Promise<void> {
  const base = session.calls.get(call.begun.messages.base_call_id ?? "");
  call.isRecorded = false;
  await session.record(withoutBase(call.begun, base?.begun.restored ?? []));
  call.isRecorded = true;
}

/** A call that is under way. One that was sampled and could not be written (a full disk) is written now, not sampled again. */
async function joined(call: Call): Promise<Call> {
  await call.recorded;
  if (call.generation === null && call.unsaved) {
    call.settled = call.save().then(() => call.assertSampled());
    call.settled.catch(() => undefined);
  }
  return call;
}

type Work = { request: NeutralRequest; wish: Wish; bases: Call[] };

/** From the durable beginning to the durable end. Rejects with the call's failure, or the store's. */
async function perform(session: Session, call: Call, work: Work, around: CallSurroundings): Promise<void> {
  try {
    await call.recorded.catch((error: unknown) => {
      session.takeBack(call);
      throw error;
    });
    call.generation = generate(session, call, work, around);
    if (session.ending !== null) void call.generation.cancel(session.ending);
    using _ = wallClock(session, call);
    const result = await call.generation.result;
    call.unsaved = () => finish(session, call, result, around);
    await call.save();
  } finally {
    call.generation = null;
    session.inFlight.delete(call);
  }
  call.assertSampled();
}

function generate(session: Session, call: Call, { request, wish, bases }: Work, { pool, continuity }: CallSurroundings): Generation {
  return new Generation(
    {
      pool,
      wish,
      pauses: call.pauses,
      bases,
      ...(session.spec.continuity === "auto" && {
        continued: (lease, signal) => continuity.promptOf(session, call, request.tools, lease, signal),
      }),
    },
    {
      messages: call.messages,
      ...(request.prompt && { prompt: request.prompt }),
      tools: request.tools,
      tool_choice: call.begun.tool_choice,
      sampling: call.begun.effective_sampling,
      call_id: call.id,
      live: session.spec.relay === "live",
    },
    sampledBudget(session, call),
  );
}

/** Writes down what came of the generation, and only then lets the session's tables know it. */
async function finish(session: Session, call: Call, result: GenerationResult, around: CallSurroundings): Promise<void> {
  const { prompt, tries, slot, requested_model, failure, ...rest } = result;
  const now = Date.now();
  const pauses = call.pauses.filter((pause) => pause.to !== pause.from).map(({ from, to }) => ({ from, to: to ?? now }));
  const finished: CallFinished = {
    type: "call_finished",
    time: now,
    call_id: call.id,
    ...rest,
    prompt_ids: prompt?.delta ?? null,
    ...(pauses.length > 0 ? { pauses } : {}),
  };
  const recorded = await recordFinished(session, tries, finished);
  call.finish(recorded.finished, recorded.finished.prompt_ids && (prompt?.whole ?? null));
  call.failure = recorded.failure ?? failure;
  call.servedAs = slot && requested_model !== null ? { slot, model: requested_model } : null;
  call.fingerprints = slot?.facts.fingerprints ?? null;
  session.learn(call);
  if (!slot) return;
  const decoding = decodeDifference(session, slot, call)
    .catch((error: unknown) => around.onError(error, `decoding where call ${call.id} parts from its parent`))
    .finally(() => session.background.delete(decoding));
  session.background.add(decoding);
}

async function answer(
  session: Session,
  call: Call,
  exchange: Exchange,
  replayed: boolean,
  options: Parameters<typeof relay>[4],
  around: CallSurroundings,
): Promise<void> {
  call.connections.add(exchange);
  noteWatched(session, call);
  try {
    const delivery = await relay(session, call, exchange, call.settled, options);
    if (delivery === "complete") session.noteOutcome(call.begun.request_class, null);
    else if (delivery === "error") session.noteOutcome(call.begun.request_class, await errorOf(call), { call });
    const entry = { time: Date.now(), call_id: call.id };
    await session
      .answered(
        call,
        replayed && delivery !== "error" ? { type: "replayed", ...entry, delivery } : { type: "answered", ...entry, delivery, status: 200 },
      )
      // The client already has its answer.
      .catch((error: unknown) => around.onError(error, `writing down how call ${call.id} was answered`));
  } finally {
    call.connections.delete(exchange);
    noteWatched(session, call);
  }
}

/** A generation that is left by all its clients is given up after a while; not a sandbox's, for its agent would leave the turns that it does not want to be trained on. */
function noteWatched(session: Session, call: Call): void {
  if (!session.spec.sandboxed) call.generation?.watched(call.connections.size);
}

/** Why an answer that had begun ended in an error: the call's failure, or that it could not be written down. */
async function errorOf(call: Call): Promise<ErrorRecord | null> {
  return call.settled.then(() => null, toErrorRecord);
}

function isTooMuch({ code, status }: AlidadeError): boolean {
  return code === "too_many_requests" || status === 413;
}

/** Once it is written down that it is full, no more is. */
function isLogFull(session: Session): boolean {
  const { max_log_bytes: limit } = session.spec.budgets;
  return limit !== undefined && session.log.bytes > limit + lastWordsBytes;
}

/** A few refusals that say why a session ended still have room. */
const lastWordsBytes = 64 * 1024;

/** Answers a failure in the caller's dialect and writes down that it was: of a call that was begun, or of none. */
async function refuse(
  session: Session,
  { call, labels, parent }: KnownRequest,
  exchange: Exchange,
  thrown: unknown,
  around: CallSurroundings,
): Promise<void> {
  const error = asAlidadeError(thrown, "internal");
  if (error.code === "internal") around.onError(thrown, `answering ${exchange.dialect.name}`);
  // What was too much is not hashed either.
  if (isTooMuch(error)) exchange.bytes.release();
  const request_class = call?.begun.request_class ?? labels?.request_class;
  session.noteOutcome(request_class ?? "unknown", toErrorRecord(error), { call, parent });
  try {
    const refusal = exchange.dialect.error(error);
    if (!exchange.headersSent) await exchange.send(refusal);
    const entry = { time: Date.now(), dialect: exchange.dialect.name };
    if (call)
      await session.answered(call, {
        type: "answered",
        time: entry.time,
        call_id: call.id,
        delivery: exchange.delivered ? "error" : "cut",
        status: refusal.status,
      });
    // A sealed log takes no more, and what a full disk refused is not worth a line of it.
    else if (session.sealed === null && !isFull(error) && !isLogFull(session))
      await session.record({
        type: "refused",
        ...entry,
        body: await exchange.bytes.seen(),
        ...(request_class && { request_class }),
        error: toErrorRecord(error),
      });
  } catch (second) {
    around.onError(second, "writing down a refusal");
  }
}
