/**
 * One run of one harness as the proxy sees it: its calls, the tables that restore and match look into, and its log.
 * Everything here can be rebuilt from the log (rebuild.ts).
 */
import { AlidadeError } from "../../errors.ts";
import { untilAborted } from "../../host/until-aborted.ts";
import { withinTime } from "../../host/within-time.ts";
import { hashOf } from "../../schema/ids.ts";
import type { Tool, Turn } from "../../schema/message.ts";
import type { RewardComponent } from "../../schema/reward-component.ts";
import type { Answered, ConversationOpened, DamagedLine, ErrorRecord, LogEntry, Policy, Replayed } from "../../schema/session-log.ts";
import { type RequestClass, type SessionSpec, workClasses } from "../../schema/session-spec.ts";
import { isFull } from "../../store/index.ts";
import { GrowingJson } from "../../wire/growing-json.ts";
import type { Call } from "../calls/call.ts";
import { isOwnTurn } from "../calls/own-turn.ts";
import { pausedWithin } from "../pool/engine-lease.ts";
import { sameJson } from "../restore/same-json.ts";
import { EmittedTurns, isAnswerTo } from "./emitted-turns.ts";
import type { LazyLog } from "./lazy-log.ts";
import { SentBefore } from "./sent-before.ts";
import { Spent } from "./spent.ts";
import { UnansweredCalls } from "./unanswered-calls.ts";

/** A seal waits so long for answers that are on their way out: a client that does not read must not hold it. */
const answersMs = 5_000;

export class Session {
  readonly id: string;
  readonly keyHash: string;
  readonly spec: SessionSpec;
  readonly log: LazyLog;
  /** Emptied when the session is sealed: from then on its log is all there is. */
  readonly calls = new Map<string, Call>();
  readonly unanswered = new UnansweredCalls();
  readonly spent = new Spent();
  /** Finished turns by their content, for assistant turns without an id of ours. */
  readonly emitted = new EmittedTurns();
  readonly tools = new Map<string, Tool[]>();
  /** Conversations that the harness opened, by id. */
  readonly conversations = new Map<string, ConversationOpened>();
  /** Ids of calls and conversations that the harness deleted: recorded, and not to be referred to. */
  readonly deleted = new Set<string>();
  /** Lines of its log that could not be read when it was brought back. */
  readonly damaged: DamagedLine[] = [];
  /** Begun, and what came of it is not known yet. */
  readonly inFlight = new Set<Call>();
  readonly sentBefore = new SentBefore();
  /** Images that were fetched for it, as `data:` URLs, by the address that its client gave. */
  readonly images = new Map<string, string>();
  /** Its requests as JSON: each stands in the next one nearly whole. */
  readonly bodies = new GrowingJson();
  #latestTools: { tools: Tool[]; hash: string } | null = null;
  readonly started: number;
  /** Work that goes on after an answer has left (decoding of differences); a seal waits for it. */
  readonly background = new Set<Promise<void>>();
  /** Requests that are being answered: how each ended is still to be written down. */
  readonly answering = new Set<Promise<void>>();
  sealed: string | null = null;
  /** What ended it from our side, for the rollout's record: the code of the refusal that the harness got. */
  stopReason: string | null = null;
  /** The last error that the harness got in its work (`noteOutcome`); null once an answer has reached it again. */
  lastError: ErrorRecord | null = null;
  /** The same of the harness's own turns alone (own-turn.ts); `call` is null where none was begun. */
  lastFailure: { error: ErrorRecord; call: Call | null } | null = null;
  revision = 0;
  /** The engines that hold its prefixes, the last one first: its calls go there while they can. */
  engineNames: string[] = [];
  /** Only when pinned: the policy of its first admitted call. */
  pinned: Policy | null = null;
  /** The first model of its work (its own model where the spec has none), and the engine that took that call. */
  began: { model: string; engine: string } | null = null;
  /** Calls begun so far; the ordinal of the next one. */
  callCount = 0;
  /** Ends of answers that a full disk kept out of the log; they are written before the next entry. */
  #owed: (Answered | Replayed)[] = [];
  /** Set once the session is ending. Calls that are still being recorded check it before they start generating. */
  ending: string | null = null;
  #sealing: Promise<void> | null = null;
  #isReleased = false;

  constructor(options: { id: string; keyHash: string; spec: SessionSpec; log: LazyLog; started: number }) {
    this.id = options.id;
    this.keyHash = options.keyHash;
    this.spec = options.spec;
    this.log = options.log;
    this.started = options.started;
  }

  /** Appends to the log; what it owes goes first. */
  async record(...entries: LogEntry[]): Promise<void> {
    const owed = this.#owed;
    this.#owed = [];
    try {
      await this.log.append(...owed, ...entries);
    } catch (error) {
      this.#owed = [...owed, ...this.#owed];
      throw error;
    } finally {
      if (this.#isReleased) await this.log.close();
    }
  }

  add(call: Call): void {
    this.calls.set(call.id, call);
    this.unanswered.add(call);
    // A client that repeats a failed request, or continues from an answer, no longer waits for the earlier one.
    for (const earlier of [this.calls.get(call.begun.retry_of ?? ""), this.#readBefore(call)]) if (earlier) this.unanswered.delete(earlier);
    this.spent.begun(call);
    this.callCount = Math.max(this.callCount, call.begun.ordinal + 1);
  }

  /** Removes a call that could not be recorded, as if it had never begun. */
  takeBack(call: Call): void {
    this.calls.delete(call.id);
    this.spent.takeBack(call);
    this.unanswered.delete(call);
    const failed = this.calls.get(call.begun.retry_of ?? "");
    if (failed) this.unanswered.add(failed);
  }

  /** Enters a finished call: it can be found by its content, and its tokens count as spent. */
  learn(call: Call): void {
    this.spent.finished(call);
    this.emitted.add(call);
  }

  /** The hash under which a tool list is stored, null for no tools, and the list as it was first sent; writes one that is new. */
  async rememberTools(tools: Tool[]): Promise<{ tools: Tool[]; hash: string | null }> {
    if (tools.length === 0) return { tools, hash: null };
    // Harnesses send tens of kilobytes of tools with every turn, nearly always the same, so equal lists share one object.
    if (sameJson(this.#latestTools?.tools, tools)) return this.#latestTools as { tools: Tool[]; hash: string };
    const hash = hashOf(tools).slice(0, 32);
    if (!this.tools.has(hash)) {
      await this.record({ type: "tools", time: Date.now(), tools_hash: hash, tools });
      this.tools.set(hash, tools);
    }
    this.#latestTools = { tools, hash };
    return this.#latestTools;
  }

  /** Milliseconds since `from` in which calls of this session waited for a weight update: no budget is charged with them. */
  pausedSince(from: number, now: number): number {
    return pausedWithin(
      [...this.calls.values()].flatMap((call) => call.pauses),
      from,
      now,
    );
  }

  assertOpen(): void {
    if (this.sealed !== null) throw new AlidadeError("session_sealed", `this session is sealed (${this.sealed}): it takes no more calls`);
  }

  /**
   * Ends the session: from now on no call is taken, what is running is cancelled at the engine, and when this resolves
   * all of it is in the log. Idempotent. Throws `store_full` where it cannot be written; sealing again goes on.
   */
  seal(reason: string): Promise<void> {
    if (this.#isReleased) return Promise.resolve();
    this.sealed ??= reason;
    this.#sealing ??= this.#end(this.sealed).finally(() => {
      this.#sealing = null;
    });
    return this.#sealing;
  }

  async #end(reason: string): Promise<void> {
    await this.settleAll(`the session was sealed: ${reason}`);
    await this.record({ type: "sealed", time: Date.now(), reason });
    await this.release();
  }

  /** Waits until it is known how its answers ended; not for long where a client does not read. */
  answersEnded(): Promise<void> {
    return withinTime(Promise.allSettled(this.answering), answersMs);
  }

  /** Waits until all that is being sampled now is sampled and in the log. Rejects with the signal's reason. */
  async callsEnded(signal: AbortSignal): Promise<void> {
    await untilAborted(Promise.allSettled([...this.inFlight].map((call) => call.settled)), signal);
  }

  /** Cancels what runs at the engine, and from now on what begins. */
  stopCalls(why: string): void {
    this.ending ??= why;
    for (const call of this.inFlight) void call.generation?.cancel(why);
  }

  /** Cancels what is running and waits until everything that is known is in the log. Throws where it cannot be written. */
  async settleAll(why: string): Promise<void> {
    this.stopCalls(why);
    await Promise.allSettled([...this.inFlight].map((call) => call.settled));
    await this.answersEnded();
    for (const call of this.calls.values()) if (call.unsaved) await call.save();
    while (this.background.size > 0) await Promise.allSettled(this.background);
    if (this.#owed.length > 0) await this.record();
  }

  /** Lets go of the memory and the file of a session that is over; a late reward opens the file again. */
  async release(): Promise<void> {
    this.#isReleased = true;
    for (const table of [
      this.calls,
      this.unanswered,
      this.emitted,
      this.sentBefore,
      this.images,
      this.bodies,
      this.tools,
      this.conversations,
      this.deleted,
    ])
      table.clear();
    await this.log.close();
  }

  /**
   * Notes how a request ended for the harness: with an error, or with its answer (null). Side calls such as titles are not
   * noted: their end says nothing about the task's work.
   */
  noteOutcome(
    request_class: RequestClass,
    error: ErrorRecord | null,
    about: { call: Call | null; parent?: Call | null } = { call: null },
  ): void {
    if (!workClasses.includes(request_class)) return;
    this.lastError = error;
    if (error === null) this.lastFailure = null;
    else if (isOwnTurn(this.calls, about.call ?? about.parent ?? null)) this.lastFailure = { error, call: about.call };
  }

  /** A line of its log that a reader could not read. That it was sealed stays true, whatever the reason was. */
  noteDamage(line: DamagedLine): void {
    this.damaged.push(line);
    if (line.entry_type === "sealed") this.sealed ??= "unknown: the line of the log that says it is damaged";
  }

  noteDelivery(call: Call, delivery: Answered["delivery"]): void {
    call.delivery = delivery;
    if (delivery === "complete") this.unanswered.delete(call);
  }

  /** Writes down how an answer ended. It has happened, so a full disk is no error here: it is written with the next entry. */
  async answered(call: Call, entry: Answered | Replayed): Promise<void> {
    this.noteDelivery(call, entry.delivery);
    try {
      await this.record(entry);
    } catch (error) {
      if (!isFull(error)) throw error;
      // Only the last error is kept for a client that retries again and again.
      this.#owed = [...this.#owed.filter((one) => one.type !== entry.type || one.call_id !== entry.call_id), entry];
    }
  }

  /** Writes a reward; late or twice is a new revision, and the last one counts. */
  async reward(
    reward: number | null,
    components: Record<string, number | null>,
    scopedComponents: RewardComponent[] = [],
  ): Promise<number> {
    // Taken before the wait, so that two rewards at once are two revisions.
    const revision = ++this.revision;
    await this.record({ type: "rewarded", time: Date.now(), revision, reward, components, scoped_components: scopedComponents });
    return revision;
  }

  /**
   * The call whose answer the client of this one has seen: by an id of ours, or by its text at the same position, unless
   * another turn with this text there may be the one that was read (as in reconstruct/log/outcome.ts).
   */
  #readBefore({ begun, messages }: Call): Call | undefined {
    const turn = begun.restored.findLast((one) => one.from_call_id === begun.parent_call_id);
    const earlier = turn && this.calls.get(turn.from_call_id);
    if (!turn || !earlier || turn.evidence !== "content") return earlier;
    if (turn.status === "edited" || !isAnswerTo(earlier, messages.slice(0, turn.message_index))) return undefined;
    return this.emitted.twinsOf(earlier).every((twin) => this.unanswered.has(twin)) ? earlier : undefined;
  }

  turnOf(callId: string): Turn | null {
    return this.calls.get(callId)?.turn ?? null;
  }
}
