/**
 * One LLM call, from the harness's request to its answer: parse, restore, match, admit, begin (durable), sample,
 * finish (durable), answer. Each step lives in its own file.
 */
import type { Engine, EngineFacts } from "../engines/index.ts";
import { AlidadeError, asAlidadeError } from "../errors.ts";
import { newId } from "../schema/ids.ts";
import type { NeutralRequest } from "../schema/message.ts";
import type { CallFinished, Policy } from "../schema/session-log.ts";
import { assertWithinBudgets, effectiveSampling, mainTurn } from "./admit.ts";
import { Call } from "./call.ts";
import { decodeDifference } from "./decode-difference.ts";
import type { Exchange } from "./exchange.ts";
import { Generation, type GenerationResult, toErrorRecord } from "./generation.ts";
import { fingerprintOf, match } from "./match.ts";
import { relay } from "./relay.ts";
import { type RestoreResult, restore } from "./restore.ts";
import type { Session } from "./session.ts";
import { messageDelta, storageBases, tokenDelta } from "./storage-base.ts";

/** What the call needs of the proxy around it. */
export type CallSurroundings = {
  engine: Engine;
  facts: EngineFacts;
  /** The policy at this moment; null when nobody named one. */
  policy(): Policy | null;
  onError(error: unknown, what: string): void;
};

export async function handleCall(session: Session, exchange: Exchange, around: CallSurroundings): Promise<void> {
  let call: Call | null = null;
  try {
    session.assertOpen();
    const request = exchange.dialect.parse(exchange.body, exchange.headers);
    const restored = restore(session, request.messages);
    const found = await findOrBegin(session, exchange, request, restored, around);
    call = found.call;
    await answer(session, call, exchange, found.settled, { stream: request.stream, relay: session.spec.relay }, found.replayed);
  } catch (error) {
    await refuse(session, call, exchange, error, around);
  }
}

type Found = { call: Call; settled: Promise<void>; replayed: boolean };

async function findOrBegin(
  session: Session,
  exchange: Exchange,
  request: NeutralRequest,
  restored: RestoreResult,
  around: CallSurroundings,
): Promise<Found> {
  const toolsHash = await session.rememberTools(request.tools);
  const said = exchange.dialect.labels(exchange.headers, exchange.body as Record<string, unknown>);
  const fingerprint = fingerprintOf({ agent: said.agent, messages: restored.messages, toolsHash, toolChoice: request.tool_choice });
  const matched = await match(session, fingerprint, exchange.signal);
  if (matched.type === "replay") return { call: matched.call, settled: Promise.resolve(), replayed: true };
  if (matched.type === "join") return { call: matched.call, settled: settledOf(matched.call), replayed: true };

  // From here to `session.add` nothing waits, so that concurrent calls cannot both take the last of a budget.
  session.assertOpen();
  if (matched.retryOf === null) assertWithinBudgets(session, Date.now());
  const turn = mainTurn(session, said.agent, said.request_class);
  const sampling = effectiveSampling(request.sampling, session.spec, turn === null || matched.retryOf === null ? turn : turn - 1);
  const bases = storageBases(session, restored.parent, said.agent);
  const { delta, whole } = messageDelta(bases, restored.messages);
  const call = new Call(
    {
      type: "call_begun",
      time: Date.now(),
      call_id: newId("call"),
      ordinal: session.calls.size,
      dialect: exchange.dialect.name,
      ...said,
      model: request.model,
      stream: request.stream,
      messages: delta,
      fingerprint,
      restored: restored.restored,
      parent_call_id: restored.parent?.id ?? null,
      retry_of: matched.retryOf?.id ?? null,
      tools_hash: toolsHash,
      tool_choice: request.tool_choice,
      requested_sampling: request.sampling,
      effective_sampling: sampling,
      policy: around.policy(),
      native: request.native,
    },
    whole,
  );
  // In the tables before it is durable, so that two equal requests at once see each other and each other's client.
  call.connections.add(exchange);
  session.add(call);
  try {
    await session.record(call.begun);
  } catch (error) {
    session.forget(call);
    throw error;
  }
  const { engine, facts } = around;
  const model = facts.models.includes(request.model) ? request.model : (facts.models[0] ?? request.model);
  call.generation = new Generation(engine, facts, {
    model,
    messages: whole,
    tools: request.tools,
    tool_choice: request.tool_choice,
    sampling,
    call_id: call.id,
  });
  call.settled = settle(session, call, call.generation, bases, around);
  // A client that has left does not listen to it, and the failure is on the record.
  call.settled.catch(() => undefined);
  return { call, settled: call.settled, replayed: false };
}

/** A turn that was sampled and could not be written (a full disk) is written now, not sampled again. */
function settledOf(call: Call): Promise<void> {
  if (call.unsaved) {
    call.settled = call.unsaved();
    call.settled.catch(() => undefined);
  }
  return call.settled ?? Promise.resolve();
}

/** Waits for the generation and makes what it gave durable. Rejects with the call's failure, or the store's. */
async function settle(session: Session, call: Call, generation: Generation, bases: Call[], around: CallSurroundings): Promise<void> {
  const result = await generation.result;
  const policy = around.policy();
  call.unsaved = async () => {
    await finish(session, call, result, bases, policy);
    call.unsaved = null;
  };
  try {
    await call.unsaved();
  } finally {
    call.generation = null;
  }
  const decoding = decodeDifference(session, around.engine, call, AbortSignal.timeout(decodeTimeoutMs))
    .catch((error: unknown) => around.onError(error, `decoding where call ${call.id} parts from its parent`))
    .finally(() => session.background.delete(decoding));
  session.background.add(decoding);
  if (result.error)
    throw new AlidadeError(result.error.code as AlidadeError["code"], result.error.message, { status: result.error.status ?? undefined });
}

/** An engine's tokenizer answers in milliseconds; this only bounds one that hangs. */
const decodeTimeoutMs = 30_000;

async function finish(session: Session, call: Call, result: GenerationResult, bases: Call[], policy: Policy | null): Promise<void> {
  const { prompt_ids, tries, ...rest } = result;
  const finished: CallFinished = {
    type: "call_finished",
    time: Date.now(),
    call_id: call.id,
    ...rest,
    prompt_ids: prompt_ids && tokenDelta(bases, prompt_ids),
    policy,
  };
  await session.record(...tries, finished);
  call.finish(finished, prompt_ids);
  session.learn(call);
}

async function answer(
  session: Session,
  call: Call,
  exchange: Exchange,
  settled: Promise<void>,
  options: Parameters<typeof relay>[4],
  replayed: boolean,
): Promise<void> {
  call.connections.add(exchange);
  call.generation?.watched(call.connections.size);
  try {
    const delivery = await relay(session, call, exchange, settled, options);
    if (replayed && delivery !== "error") {
      call.delivery = delivery;
      await session.record({ type: "replayed", time: Date.now(), call_id: call.id, delivery });
    } else await session.answered(call, delivery, 200);
  } finally {
    call.connections.delete(exchange);
    call.generation?.watched(call.connections.size);
  }
}

/** Answers a failure in the caller's dialect and writes down that it was: of a call that was begun, or of none. */
async function refuse(session: Session, call: Call | null, exchange: Exchange, thrown: unknown, around: CallSurroundings): Promise<void> {
  const error = asAlidadeError(thrown, "internal");
  if (error.code === "internal") around.onError(thrown, `answering ${exchange.dialect.name}`);
  try {
    const said = exchange.dialect.error(error);
    if (!exchange.headersSent) await exchange.send(said);
    if (call) await session.answered(call, exchange.delivered ? "error" : "cut", said.status);
    else await session.record({ type: "refused", time: Date.now(), dialect: exchange.dialect.name, error: toErrorRecord(error) });
  } catch (second) {
    around.onError(second, "writing down a refusal");
  }
}
