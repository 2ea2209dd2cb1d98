/** One run of one harness as the proxy sees it: what its log says (session-state.ts), and what runs now (running.ts). */
import { AlidadeError } from "../../base/errors.ts";
import type { Media } from "../../base/media/media.ts";
import { hashOf } from "../../base/schema/ids.ts";
import type { Tool, Turn } from "../../base/schema/message.ts";
import type { RewardComponent } from "../../base/schema/reward-component.ts";
import type { Answered, ErrorRecord, LogEntry, LogLine, Opened, Refused, Replayed } from "../../base/schema/session-log.ts";
import type { SessionSpec } from "../../base/schema/session-spec.ts";
import { sameJson } from "../../base/wire/same-json.ts";
import type { ServedBy } from "../pool/engine-slot.ts";
import type { Placed, Placement } from "../pool/own-model.ts";
import type { Replay } from "../replay/replay.ts";
import { isFull } from "../store/index.ts";
import type { Call } from "./call.ts";
import type { CallRun } from "./call-run.ts";
import type { LazyLog } from "./lazy-log.ts";
import { pausedWithin } from "./paused-within.ts";
import { PictureCheck } from "./picture-check.ts";
import { afterTry, placementOf } from "./placement.ts";
import { Running } from "./running.ts";
import { SentBefore } from "./sent-before.ts";
import { type MadeOfEntry, type RecordedState, SessionState } from "./session-state.ts";
import { afterBegun, type Spent } from "./spent.ts";

/** What has happened, whether it can be written down at once or not. */
type Happened = Answered | Replayed | Refused;

/** `frame`: returns the newest picture as PNG. All viewers together cause at most one picture a second. */
export type WatchedScreen = { frame(): Promise<Buffer> };

export class Session implements Placed {
  readonly running: Running;
  readonly sent = new SentBefore();
  readonly sight = new PictureCheck();
  /** What its first calls are answered from, instead of an engine; null: nothing. */
  replay: Replay | null = null;
  /** The rollout's screen, for an operator; null if it has none. Its pictures are not recorded. */
  screen: WatchedScreen | null = null;
  /** Called with entries once they are in the log. Must not throw. */
  onWritten: ((entries: readonly LogEntry[]) => void) | null = null;
  readonly #state: SessionState;
  readonly #log: LazyLog;
  #latestTools: { tools: Tool[]; hash: string } | null = null;
  /** What a full disk kept out of the log: it goes ahead of the next entry that is written. */
  #owed: Happened[] = [];
  /** The revision of the last reward, also while that is being written. */
  #revision = 0;
  /** Why it takes no more calls, once it is being sealed. */
  #sealed: string | null = null;
  /** Set once the session is ending. Calls that are still being recorded check it before they start generating. */
  #ending: string | null = null;
  #sealing: Promise<void> | null = null;
  #isReleased = false;

  /** `opened` is the first line of its log. */
  constructor(opened: Opened, log: LazyLog) {
    this.#state = new SessionState(opened);
    this.running = new Running(opened.spec);
    this.#log = log;
  }

  get id(): string {
    return this.#state.opened.session_id;
  }

  get spec(): SessionSpec {
    return this.#state.opened.spec;
  }

  /** What its log says. */
  get state(): RecordedState {
    return this.#state;
  }

  /** The size of its log, with the pictures that it names. */
  get logBytes(): number {
    return this.#log.bytes + this.#state.pictureBytes;
  }

  /** Where the bytes of its pictures lie; null: they stand in its log. */
  get media(): Media | null {
    return this.#log.media;
  }

  get sealed(): string | null {
    return this.#sealed ?? this.#state.sealed;
  }

  /** Where its next call goes, by the log and by what runs. */
  get placement(): Placement {
    const tries = this.running.tries().reduce((before, [call, tried]) => afterTry(before, this.spec, call.begun, tried), this.#state.tries);
    return placementOf(tries, this.spec);
  }

  /** What it has used of its budgets, with the calls whose beginning is being written. */
  get spent(): Spent {
    return this.#beginning().reduce(afterBegun, this.#state.spent);
  }

  /** The ordinal of the next call. */
  get callCount(): number {
    return Math.max(this.#state.callCount, ...this.#beginning().map(({ begun }) => begun.ordinal + 1));
  }

  /** One that is in the log. */
  call(id: string | null | undefined): Call | undefined {
    return this.#state.calls.get(id ?? "");
  }

  turnOf(callId: string): Turn | null {
    return this.call(callId)?.turn ?? null;
  }

  /** How the last of the harness's own turns failed, and the engine of that call where there is one; null once an answer has reached it again. */
  get lastFailure(): { error: ErrorRecord; served: ServedBy | null } | null {
    const { lastFailure } = this.#state;
    return lastFailure && { error: lastFailure.error, served: lastFailure.call && this.running.serverOf(lastFailure.call) };
  }

  /** Calls in the order in which they were begun, with those whose beginning is being written. */
  calls(): Call[] {
    return [...this.#state.calls.values(), ...this.#beginning()];
  }

  /** Calls that ask this and that no client has got whole. Oldest first. */
  unanswered(fingerprint: string): Call[] {
    const beginning = this.#beginning().filter(({ begun }) => begun.fingerprint === fingerprint);
    return [...this.#left(this.#state.unanswered.withRequest(fingerprint)), ...beginning];
  }

  /** Those that ask other models the same. Oldest first. */
  unansweredElsewhere(fingerprint: string): Call[] {
    return this.#left(this.#state.unanswered.ofOtherModels(fingerprint));
  }

  /** Its client has the whole answer. */
  isDelivered(call: Call): boolean {
    return call.delivery === "complete" || this.running.hasArrived(call);
  }

  /** Appends to the log, what it owes first, and then takes it into the state. */
  async record(entry: LogEntry | LogEntry[], made?: MadeOfEntry): Promise<void> {
    const owed = this.#owed;
    const entries = [entry].flat();
    this.#owed = [];
    try {
      await this.#log.append(...owed, ...entries);
      this.onWritten?.([...owed, ...entries]);
      // What was owed is known already. Its place in the log may be behind what was known after it.
      for (const one of owed) this.#state.apply(one);
      for (const one of entries) this.#state.apply(one, made);
    } catch (error) {
      this.#owed = [...owed, ...this.#owed];
      throw error;
    } finally {
      if (this.#isReleased) await this.#log.close();
    }
  }

  /** Takes a line that its log holds already. */
  bringBack(line: LogLine): void {
    this.#state.apply(line);
    this.#revision = this.#state.revision;
  }

  /** Writes down what has happened: a full disk is no error here, for then it is known all the same and written with the next entry. */
  async note(entry: Happened): Promise<void> {
    // What a full disk refused is not worth another try at it.
    if (entry.type === "refused" && entry.error.code === "store_full") return this.#owe(entry);
    try {
      await this.record(entry);
    } catch (error) {
      if (!isOfStore(error)) throw error;
      this.#owe(entry);
      if (!isFull(error)) throw error;
    }
  }

  /** Notes how an answer to this call ended. */
  noteAnswer(call: Call, entry: Answered | Replayed): Promise<void> {
    const noting = this.note(entry);
    return entry.delivery === "complete" ? this.running.arrived(call, noting) : noting;
  }

  /** The hash under which a tool list is stored, null for no tools, and the list as it was first sent; writes one that is new. */
  async rememberTools(tools: Tool[]): Promise<{ tools: Tool[]; hash: string | null }> {
    if (tools.length === 0) return { tools, hash: null };
    // Harnesses send tens of kilobytes of them with every turn, nearly always the same: the list of then is known to others too.
    if (sameJson(this.#latestTools?.tools, tools)) return this.#latestTools as { tools: Tool[]; hash: string };
    const hash = hashOf(tools).slice(0, 32);
    if (!this.#state.tools.has(hash)) await this.record({ type: "tools", time: Date.now(), tools_hash: hash, tools });
    this.#latestTools = { tools, hash };
    return this.#latestTools;
  }

  /** Its clock stands still: its calls are answered from a record. */
  get isReplaying(): boolean {
    return this.replay?.isPlaying ?? false;
  }

  /**
   * Milliseconds since `from` that no budget is charged with: calls of this session waited for an engine and none was sampled.
   * A replayed part takes the time that it took when it was recorded, which may be more than the replay took.
   */
  pausedSince(from: number, now: number): number {
    if (this.isReplaying) return now - from;
    const { replayEnded: replayed } = this.#state;
    if (replayed === null || replayed.time <= from) return this.#pausedWithin(from, now);
    return replayed.time - from - replayed.recorded_ms + this.#pausedWithin(replayed.time, now);
  }

  #pausedWithin(from: number, now: number): number {
    const over = [...this.#state.calls.values()].flatMap(({ begun, outcome }) =>
      outcome === null ? [] : [{ from: begun.time, to: outcome.time, pauses: outcome.pauses ?? [] }],
    );
    const running = this.running.all().filter(({ call }) => call.outcome === null);
    // When one that could not be written down ended is not on record: after its last try nothing of it is counted as sampled.
    const until = ({ call, isUnsaved, tries }: CallRun) => (isUnsaved ? (tries.at(-1)?.time ?? call.begun.time) : null);
    return pausedWithin([...over, ...running.map((run) => ({ from: run.call.begun.time, to: until(run), pauses: run.pauses }))], from, now);
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
    this.#sealed ??= reason;
    this.#sealing ??= this.#end(this.#sealed).finally(() => {
      this.#sealing = null;
    });
    return this.#sealing;
  }

  /** Cancels what runs at the engine, and from now on what begins. */
  stopCalls(why: string): void {
    this.#ending ??= why;
    this.replay?.leave();
    for (const run of this.running.all()) this.stopWhereEnding(run);
  }

  /** Takes `stopCalls` back, for a harness that is started again. A session that is sealed stays so. */
  allowCalls(): void {
    this.#ending = null;
  }

  /** For a call that begins to generate. */
  stopWhereEnding(run: { cancel(why: string): void }): void {
    if (this.#ending !== null) run.cancel(this.#ending);
  }

  /** Cancels what is running and waits until everything that is known is in the log. Throws where it cannot be written. */
  async settleAll(why: string): Promise<void> {
    this.stopCalls(why);
    await this.running.callsEnded();
    await this.running.answersEnded();
    await this.running.saveAll();
    await this.running.backgroundEnded();
    if (this.#owed.length > 0) await this.record([]);
  }

  /** Lets go of the memory and the file of a session that is over; a late reward opens the file again. */
  async release(): Promise<void> {
    this.#isReleased = true;
    this.sent.clear();
    this.running.clear();
    await this.#log.close();
  }

  /** Lets go of the file. Waits for what is being written; the next entry opens it again. */
  closeLog(): Promise<void> {
    return this.#log.close();
  }

  /** Writes a reward; late or twice is a new revision, and the last one counts. */
  async reward(
    reward: number | null,
    components: Record<string, number | null>,
    scopedComponents: RewardComponent[] = [],
  ): Promise<number> {
    // Taken before the wait, so that two rewards at once are two revisions.
    const revision = ++this.#revision;
    await this.record({ type: "rewarded", time: Date.now(), revision, reward, components, scoped_components: scopedComponents });
    return revision;
  }

  async #end(reason: string): Promise<void> {
    await this.settleAll(`the session was sealed: ${reason}`);
    await this.record({ type: "sealed", time: Date.now(), reason });
    await this.release();
  }

  /** In the order in which they came: their places, ordinals and turns are taken before that is durable. */
  #beginning(): Call[] {
    return this.running.all().flatMap(({ call, isBeginning }) => (isBeginning && !this.#state.calls.has(call.id) ? [call] : []));
  }

  /** Leaves out calls that were superseded or have arrived, if the log does not say so yet. */
  #left(calls: Call[]): Call[] {
    const superseded = new Set(this.#beginning().flatMap((call) => this.#state.supersededBy(call)));
    return calls.filter((call) => !superseded.has(call) && !this.running.hasArrived(call));
  }

  /** Only the last error is kept for a client that retries again and again. */
  #owe(entry: Happened): void {
    this.#state.apply(entry);
    this.#owed = [...this.#owed.filter((one) => !isAgain(one, entry)), entry];
  }
}

/** A refusal of another conversation is not the same: one may be the harness's and the other a command's. */
function isAgain(earlier: Happened, entry: Happened): boolean {
  if (earlier.type === "refused" || entry.type === "refused") return isSameRefusal(earlier, entry);
  return earlier.type === entry.type && earlier.call_id === entry.call_id && earlier.delivery === entry.delivery;
}

function isSameRefusal(earlier: Happened, entry: Happened): boolean {
  if (earlier.type !== "refused" || entry.type !== "refused") return false;
  if (earlier.parent_call_id !== entry.parent_call_id || earlier.request_class !== entry.request_class) return false;
  return earlier.error.code === entry.error.code && earlier.error.budget === entry.error.budget;
}

function isOfStore(error: unknown): boolean {
  return error instanceof AlidadeError && (error.code === "store_full" || error.code === "store_error");
}
