/**
 * Restore undoes what the harness's serialiser did to a turn that we emitted: renamed ids, re-serialised arguments, trimmed
 * or dropped white space, split messages. A turn with other content was edited: it stays as it was sent, and is labelled.
 */

import type { Message } from "../../base/schema/message.ts";
import { toolCallsOf } from "../../base/schema/message.ts";
import type { Restored } from "../../base/schema/session-log.ts";
import { fromCarrier } from "../dialects/index.ts";
import type { Call } from "../session/call.ts";
import type { RestoredTurn } from "../session/sent-before.ts";
import type { Session } from "../session/session.ts";
import { compareTurn } from "./compare-turn.ts";
import { ownId } from "./own-id.ts";
import { recognise } from "./recognise.ts";
import { isStandIn, wordlessTurnBehind } from "./wordless-turn.ts";

export type RestoreResult = { messages: Message[]; restored: Restored[]; parent: Call | null };

/** The conversation for the engine, what was put back, and the call of the last known turn. */
export function restore(session: Session, messages: Message[]): RestoreResult {
  const restoring = new Restoring(session);
  for (let start = 0; start < messages.length; ) {
    let end = start;
    while (messages[end]?.role === "assistant") end++;
    const taken = end > start ? restoring.oneByOne(messages, start) : 0;
    if (taken > 0) end = start + taken;
    else if (end > start) restoring.run(messages.slice(start, end));
    else restoring.pass(messages[end++] as Message);
    start = end;
  }
  return restoring;
}

/** A turn with eight calls and a text for each comes back in fewer pieces; more are tried one by one. */
const maxPieces = 32;

/**
 * Characters of new pieces that one request has joined to test whether they are one turn. A thousand turns in four
 * pieces of a kilobyte reach this limit, or twenty milliseconds; a sandboxed session, which has no such past, gets a
 * quarter. Beyond it, pieces are tested one by one.
 */
const mostTried = 4_000_000;
/** What a piece costs beside its characters. */
const pieceCost = 200;

class Restoring implements RestoreResult {
  readonly messages: Message[] = [];
  readonly restored: Restored[] = [];
  parent: Call | null = null;
  readonly #session: Session;
  /** The same messages as the session's calls hold them. In a replay these are the recorded messages, not the present tool outputs. */
  readonly #before: Message[];
  #lastTurn = { call_id: "", index: 0 };
  /** Engine ids of calls that a harness renamed, by its own ids. */
  readonly #renamed = new Map<string, string>();
  #tried = 0;

  constructor(session: Session) {
    this.#session = session;
    this.#before = session.replay ? [] : this.messages;
  }

  pass(message: Message): void {
    if (message.role === "user") this.#putBack();
    this.#push(this.#passed(message));
  }

  /** The turn that a harness has left out here, because it dropped all that was in it. */
  #putBack(): void {
    const last = this.messages.at(-1);
    const call = last === undefined || last.role === "assistant" ? undefined : wordlessTurnBehind(this.#session, this.#before);
    if (call?.turn) this.#add(putBack(call, call.turn.message, "turn_dropped"));
  }

  /**
   * A turn whose parallel calls come back one by one, each followed by its result. No result can precede the end of the
   * turn, so all results belong after it, in their own order. Returns the number of messages; 0 for none.
   */
  oneByOne(messages: Message[], start: number): number {
    const known = this.#session.sent.turns.get(messages[start] as Message)?.record;
    if (known && known.status !== "edited") return 0;
    const pieces: Message[] = [];
    const results: Message[] = [];
    let call: string | null = null;
    let isDivided = false;
    let end = start;
    for (; end < messages.length && pieces.length <= maxPieces; end++) {
      const message = messages[end] as Message;
      if (message.role === "tool" && call !== null) results.push(message);
      else if (message.role === "assistant" && (call === null || callOf(message) === call)) {
        call ??= callOf(message);
        isDivided ||= results.length > 0;
        pieces.push(message);
      } else break;
    }
    if (!isDivided || !this.#mayTry(pieces)) return 0;
    const turn = this.#turn({ role: "assistant", parts: pieces.flatMap((message) => message.parts) });
    if (!turn.record || turn.record.status === "edited") return 0;
    this.#add({ ...turn, record: { ...turn.record, status: "restored", differences: [...turn.record.differences, "one_by_one"] } });
    for (const result of results) this.pass(result);
    return end - start;
  }

  /** Neighbouring messages of the assistant may be one turn that the harness split, so the most that fits is taken at once. */
  run(pieces: Message[]): void {
    for (let at = 0; at < pieces.length; ) at += this.#takeJoined(pieces, at) || this.#takeOne(pieces[at] as Message);
  }

  #takeJoined(pieces: Message[], at: number): number {
    const most = Math.min(maxPieces, pieces.length - at);
    if (most < 2) return 0;
    const { joined } = this.#session.sent;
    const [first, last] = [pieces[at] as Message, pieces[at + most - 1] as Message];
    const known = joined.get(first);
    if (known?.last !== last) return this.#tryJoined(pieces.slice(at, at + most));
    if (known.turn) this.#add(known.turn);
    return known.length;
  }

  /** The most of them that are one turn, from the first; how many. */
  #tryJoined(pieces: Message[]): number {
    const { joined } = this.#session.sent;
    const [first, last] = [pieces[0] as Message, pieces.at(-1) as Message];
    for (let length = pieces.length; length > 1; length--) {
      const group = pieces.slice(0, length);
      if (!this.#mayTry(group)) return 0;
      if (!mayBeOneTurn(group)) continue;
      const turn = this.#turn({ role: "assistant", parts: group.flatMap((message) => message.parts) });
      if (!turn.record) continue;
      if (turn.record.status !== "edited") {
        joined.set(first, { last, length, turn });
        this.#add(turn);
        return length;
      }
      // One of the pieces is our reasoning as a message of its own: together they are our turn, edited.
      if (turn.record.differences.includes("reasoning_as_text")) {
        for (const [index, message] of group.entries())
          this.#add({ ...turn, message: this.#withEngineIds(message), record: index === 0 ? turn.record : null });
        return length;
      }
    }
    if (!this.#session.running.isBusy) joined.set(first, { last, length: 0, turn: null });
    return 0;
  }

  #mayTry(group: readonly Message[]): boolean {
    const most = this.#session.spec.sandboxed ? mostTried / 4 : mostTried;
    if (this.#tried > most) return false;
    for (const message of group) this.#tried += pieceCost + sizeOf(message);
    return this.#tried <= most;
  }

  #takeOne(message: Message): number {
    this.#add(this.#turn(message));
    return 1;
  }

  #add({ message, call, record, renamed }: RestoredTurn): void {
    for (const [id, engineId] of renamed) this.#renamed.set(id, engineId);
    if (record) {
      this.#lastTurn = { call_id: record.from_call_id, index: this.messages.length };
      this.restored.push({ ...record, message_index: this.messages.length });
    }
    this.parent = call ?? this.parent;
    this.#push(message);
  }

  #push(message: Message): void {
    const { call_id, index } = this.#lastTurn;
    const distance = this.messages.length - index;
    this.messages.push(message);
    if (this.#before !== this.messages) this.#before.push(this.#session.replay?.recordedFor(message, call_id, distance) ?? message);
  }

  #turn(sent: Message): RestoredTurn {
    const { turns } = this.#session.sent;
    const turn = turns.get(sent) ?? this.#restored(sent);
    // No call matches yet. A running call may still turn out to be this turn, so this is remembered only while no call runs.
    if (turn.record || !this.#session.running.isBusy) turns.set(sent, turn);
    return turn;
  }

  #restored(sent: Message): RestoredTurn {
    const recognised = recognise(this.#session, sent, this.#before);
    const wordless = !recognised && isStandIn(sent) ? wordlessTurnBehind(this.#session, this.#before) : undefined;
    if (wordless?.turn) return putBack(wordless, wordless.turn.message, "stand_in");
    const emitted = recognised?.call.turn?.message;
    if (!recognised || !emitted || this.#session.spec.restore === "off")
      return { message: this.#passed(sent), call: recognised?.call ?? null, record: null, renamed: [] };
    const { call, evidence, isUnsure } = recognised;
    // It is unknown which call's reasoning this was, so none is put back.
    const policy = isUnsure ? "serialisation" : this.#session.spec.restore;
    const { status, differences, message, renamed } = compareTurn(call.id, emitted, sent, policy);
    return {
      message: status === "edited" ? this.#withEngineIds(message) : message,
      call,
      record: { from_call_id: call.id, evidence, status, differences },
      renamed,
    };
  }

  /** The message as the engine gets it: the same object every time, for what is known of it is known by its identity. */
  #passed(sent: Message): Message {
    const { passed } = this.#session.sent;
    const known = passed.get(sent) ?? this.#withEngineIds(sent);
    if (!this.#waitsForIds(sent)) passed.set(sent, known);
    return known;
  }

  /** It names a call of a turn that is still being sampled: what the engine calls it is not known yet. */
  #waitsForIds({ parts }: Message): boolean {
    if (!this.#session.running.isBusy) return false;
    return parts.some((part) => {
      const id = part.type === "tool_result" ? part.call_id : part.type === "tool_call" ? part.id : "";
      const call = this.#session.call(ownId(id)?.call_id);
      return call !== undefined && this.#session.running.of(call) !== null;
    });
  }

  /** Results and foreign turns name calls by the ids that we minted; some templates print ids, so the engine gets its own. */
  #withEngineIds(message: Message): Message {
    if (!message.parts.some((part) => part.type === "tool_result" || part.type === "tool_call")) return message;
    return {
      ...message,
      parts: message.parts.map((part) => {
        if (part.type === "tool_result") return { ...part, call_id: this.#engineId(part.call_id) };
        return part.type === "tool_call" ? { ...part, id: this.#engineId(part.id) } : part;
      }),
    };
  }

  #engineId(id: string): string {
    const ours = ownId(id);
    const emitted = ours && this.#session.turnOf(ours.call_id);
    return (emitted && toolCallsOf(emitted.message)[ours.index]?.id) || this.#renamed.get(id) || id;
  }
}

/** `difference`: what the harness sent instead. */
function putBack(call: Call, message: Message, difference: "stand_in" | "turn_dropped"): RestoredTurn {
  return {
    message,
    call,
    record: { from_call_id: call.id, evidence: "content", status: "restored", differences: [difference] },
    renamed: [],
  };
}

/** The call of ours that minted a message's ids; null where there is none. */
function callOf(message: Message): string | null {
  return toolCallsOf(message).map(({ id }) => ownId(id)?.call_id ?? null)[0] ?? null;
}

/** Characters of its texts and calls. */
function sizeOf({ parts }: Message): number {
  return parts.reduce((sum, part) => sum + ("text" in part ? part.text.length : part.type === "tool_call" ? part.arguments.length : 0), 0);
}

/** Pieces that carry ids or carriers of two calls of ours are two turns. */
function mayBeOneTurn(group: Message[]): boolean {
  const calls = group.flatMap(({ parts }) =>
    parts.map((part) => {
      if (part.type === "tool_call") return ownId(part.id)?.call_id;
      return part.type === "reasoning" ? (fromCarrier(part.carrier ?? "") ?? undefined) : undefined;
    }),
  );
  return new Set(calls.filter((id) => id !== undefined)).size < 2;
}
