/**
 * How an answer gets to the harness. *Buffered*: only when the turn is complete and durable, behind keep-alives of the
 * dialect's own; *live*: every event as it comes, and only the end waits. Both play events through the same writer, so
 * that an answer is a pure function of the record.
 */

import { AlidadeError } from "../../base/errors.ts";
import { withinTime } from "../../base/host/within-time.ts";
import { withBytes } from "../../base/media/media.ts";
import { mintToolCallId } from "../../base/schema/ids.ts";
import type { Turn } from "../../base/schema/message.ts";
import { type AnswerContext, type StreamWriter, toEvents } from "../dialects/index.ts";
import type { Exchange } from "../http/exchange.ts";
import type { Call } from "../session/call.ts";
import type { CallRun } from "../session/call-run.ts";
import type { Session } from "../session/session.ts";
import type { LiveEvent } from "./sample.ts";

/** Gemini CLI gives up after 60 s without headers; idle timers of others begin at 240 s. */
const defaultKeepAliveMs = 5_000;
/** Headers wait this long for the engine's word, so that "prompt is too long" keeps its status. */
const headersHeldMs = 1_000;
/** After a refusal they wait for the next tries, at most two with up to 2 s before each: harnesses try again by a status, and not all of them by an error in a stream. */
const refusedHeldMs = 5_000;

export type RelayOptions = { stream: boolean; relay: "buffered" | "live"; keepAliveMs?: number | undefined };

/** A call and, where it is not over, its run. */
export type Relayed = { call: Call; run: CallRun | null };

/** Resolves when the answer has left or the client is gone, with what became of it. Throws the call's failure where no header has left. */
export async function relay(
  session: Session,
  { call, run }: Relayed,
  exchange: Exchange,
  options: RelayOptions,
): Promise<{ delivery: "complete" | "cut" } | { delivery: "error"; error: unknown }> {
  const context = contextOf(session, call);
  const settled = run?.settled ?? Promise.resolve();
  if (!options.stream) {
    await Promise.race([settled, exchange.closed]);
    if (exchange.isClosed) return { delivery: "cut" };
    await exchange.send({ status: 200, headers: {}, body: exchange.dialect.answer(mintedTurn(call), context) });
    return { delivery: exchange.delivered ? "complete" : "cut" };
  }
  const writer = exchange.dialect.writer(context);
  try {
    await holdHeaders(run, settled, exchange);
    exchange.openStream();
    exchange.write(writer.open());
    using _ = keepAlive(exchange, writer, options.keepAliveMs ?? defaultKeepAliveMs);
    const stream: RelayStream = { exchange, writer, settled };
    if (options.relay === "live") await relayLive(session, { call, run }, stream);
    else await relayBuffered(call, stream);
  } catch (error) {
    // Before the headers the caller answers with a status; after them the failure is reported in the stream.
    if (!exchange.headersSent || exchange.isClosed) throw error;
    await exchange.endStream(
      writer.error(error instanceof AlidadeError ? error : new AlidadeError("internal", String(error), { cause: error })),
    );
    return { delivery: "error", error };
  }
  return { delivery: exchange.delivered ? "complete" : "cut" };
}

type RelayStream = { exchange: Exchange; writer: StreamWriter; settled: Promise<void> };

/** All that shapes an answer beside the turn, read from the record. */
export function contextOf(session: Session, call: Call): AnswerContext {
  const { begun } = call;
  const tools = begun.tools_hash === null ? [] : (session.state.tools.get(begun.tools_hash) ?? []);
  return {
    call_id: call.id,
    created: Math.floor(begun.time / 1000),
    model: begun.model,
    native: begun.native,
    get messages() {
      return withBytes(call.messages, session.media);
    },
    custom_tools: new Set(tools.filter((tool) => tool.kind === "custom").map((tool) => tool.name)),
  };
}

/** The call's turn with the ids that the harness sees. */
export function mintedTurn(call: Call): Turn {
  const turn = turnOf(call);
  let index = 0;
  const parts = turn.message.parts.map((part) => (part.type === "tool_call" ? { ...part, id: mintToolCallId(call.id, index++) } : part));
  return { ...turn, message: { ...turn.message, parts } };
}

function turnOf(call: Call) {
  const turn = call.turn;
  if (!turn) throw new AlidadeError("internal", `call ${call.id} has no answer to give`);
  return turn;
}

async function holdHeaders(run: CallRun | null, settled: Promise<void>, exchange: Exchange): Promise<void> {
  const generation = run?.generation;
  if (!generation || generation.isAccepted) return;
  const news = Promise.race([generation.accepted, exchange.closed]);
  await withinTime(news, headersHeldMs);
  if (generation.wasRefused && !generation.isAccepted) await withinTime(news, refusedHeldMs);
  // A refusal at admission rejects here, while its status can still be sent.
  if (generation.isOver && !generation.isAccepted) await settled;
}

async function relayBuffered(call: Call, { exchange, writer, settled }: RelayStream): Promise<void> {
  await Promise.race([settled, exchange.closed]);
  if (exchange.isClosed) return;
  const frames = [...toEvents(turnOf(call), (index) => mintToolCallId(call.id, index))].flatMap((event) => writer.event(event));
  await exchange.endStream(frames);
}

async function relayLive(session: Session, { call, run }: Relayed, stream: RelayStream): Promise<void> {
  const { exchange, writer, settled } = stream;
  if (!run?.generation) return relayBuffered(call, stream);
  const live = new LiveEvents(call, exchange, writer);
  using _ = run.generation.follow((events) => live.show(events));
  // The end waits until the turn is durable.
  await Promise.race([settled.finally(() => live.showHeld()), exchange.closed, live.broken]);
  if (exchange.isClosed) return;
  const turn = session.turnOf(call.id) ?? turnOf(call);
  await exchange.endStream(writer.event({ type: "end", finish_reason: turn.finish_reason, stop: turn.stop, usage: turn.usage }));
}

/** Writes what is sampled as it comes, and to a client that does not read, later, all that has come until then. */
class LiveEvents {
  readonly #call: Call;
  readonly #exchange: Exchange;
  readonly #writer: StreamWriter;
  readonly #broken = Promise.withResolvers<never>();
  #held: LiveEvent[] = [];
  #toolCalls = 0;

  constructor(call: Call, exchange: Exchange, writer: StreamWriter) {
    this.#call = call;
    this.#exchange = exchange;
    this.#writer = writer;
    this.broken.catch(() => undefined);
  }

  /** Rejects when an event cannot be written down in the client's dialect. */
  get broken(): Promise<never> {
    return this.#broken.promise;
  }

  show(events: LiveEvent[]): void {
    if (this.#exchange.isClosed) return;
    if (!this.#exchange.isFull) this.#write(events);
    else {
      if (this.#held.length === 0) this.#exchange.onDrain(() => this.showHeld());
      this.#held.push(...events);
    }
  }

  showHeld(): void {
    const held = this.#held;
    this.#held = [];
    this.#write(held);
  }

  #write(events: LiveEvent[]): void {
    try {
      this.#exchange.write(events.flatMap((event) => this.#writer.event(this.#minted(event))));
    } catch (error) {
      this.#broken.reject(error);
    }
  }

  #minted(event: LiveEvent): LiveEvent {
    return event.type === "tool-call" ? { ...event, id: mintToolCallId(this.#call.id, this.#toolCalls++) } : event;
  }
}

/**
 * Sends the dialect's keep-alive where nothing was sent for a while. One timer a stream: one a token would cost more than
 * all else that is done to a token.
 */
function keepAlive(exchange: Exchange, writer: StreamWriter, everyMs: number): Disposable {
  let seen = exchange.written;
  const timer = setInterval(() => {
    // A client that does not read needs no sign of life, and its buffer must not grow.
    if (exchange.written === seen && !exchange.isFull) exchange.write(writer.keepAlive());
    seen = exchange.written;
  }, everyMs);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
