/**
 * What a session's log says. `apply` is the only way to change it: with each entry once it is durable, and with all of
 * them when the session is brought back. So a process that was killed knows afterwards what it knew, and nothing else.
 */
import { imagesIn, isStored } from "../../base/media/stored-picture.ts";
import { routingBytesOf, supportBytesOf } from "../../base/schema/log/token-numbers.ts";
import type { Message, Tool } from "../../base/schema/message.ts";
import { withBase } from "../../base/schema/restored-turns.ts";
import {
  type Answered,
  type CallBegun,
  type CallFinished,
  type ConversationOpened,
  type DamagedLine,
  type ErrorRecord,
  type LogLine,
  type Opened,
  openedAs,
  type Refused,
  type ReplayEnded,
  type Replayed,
  type Tried,
} from "../../base/schema/session-log.ts";
import { type RequestClass, workClasses } from "../../base/schema/session-spec.ts";
import { IdText } from "../../base/tokens/id-text.ts";
import { Call } from "./call.ts";
import { EmittedTurns, isAnswerTo } from "./emitted-turns.ts";
import { isOwnTurn } from "./own-turn.ts";
import { afterTry, noTries, type Tries } from "./placement.ts";
import type { Delta } from "./prompt-tokens.ts";
import { afterBegun, afterFinished, type BudgetName, endedBy, nothingSpent, type Spent } from "./spent.ts";
import { UnansweredCalls } from "./unanswered-calls.ts";

/** What the caller has made of an entry already: its call, or its prompt's ids. Without it the same is made of the entry. */
export type MadeOfEntry = { call?: Call; prompt?: IdText | null };

/** `call` is null where none was begun. */
export type LastFailure = { error: ErrorRecord; call: Call | null };

/** All but the way to change it. */
export type RecordedState = Omit<SessionState, "apply">;

export class SessionState {
  #opened: Opened;
  readonly #calls = new Map<string, Call>();
  readonly #unanswered = new UnansweredCalls();
  readonly #emitted = new EmittedTurns();
  readonly #tools = new Map<string, Tool[]>();
  readonly #conversations = new Map<string, ConversationOpened>();
  readonly #deleted = new Set<string>();
  readonly #damaged: DamagedLine[] = [];
  readonly #pictures = new Set<string>();
  #pictureBytes = 0;
  #numberBytes = 0;
  #callCount = 0;
  #toolRuns = 0;
  #spent: Spent = nothingSpent;
  #endedBy: BudgetName | null = null;
  #tries: Tries = noTries;
  #lastError: ErrorRecord | null = null;
  #lastFailure: LastFailure | null = null;
  #revision = 0;
  #sealed: string | null = null;
  #replayEnded: ReplayEnded | null = null;

  constructor(opened: Opened) {
    this.#opened = opened;
  }

  /** Its spec names the rollout that the session is of now. */
  get opened(): Opened {
    return this.#opened;
  }

  /** By id, in the order in which they were begun. Emptied by the seal, as all that calls alone are looked up in: then the log is all there is. */
  get calls(): ReadonlyMap<string, Call> {
    return this.#calls;
  }

  /** Calls that no client has got whole, by what they ask. */
  get unanswered(): Pick<UnansweredCalls, "withRequest" | "ofOtherModels" | "has"> {
    return this.#unanswered;
  }

  /** Finished turns by their content, for assistant turns without an id of ours. */
  get emitted(): Pick<EmittedTurns, "find" | "at"> {
    return this.#emitted;
  }

  /** By their hash. */
  get tools(): ReadonlyMap<string, Tool[]> {
    return this.#tools;
  }

  /** Conversations that the harness opened, by id. */
  get conversations(): ReadonlyMap<string, ConversationOpened> {
    return this.#conversations;
  }

  /** Ids of calls and conversations that the harness deleted: recorded, and not to be referred to. */
  get deleted(): ReadonlySet<string> {
    return this.#deleted;
  }

  /** Lines of its log that could not be read when it was brought back. */
  get damaged(): readonly DamagedLine[] {
    return this.#damaged;
  }

  /** Calls begun so far. */
  get callCount(): number {
    return this.#callCount;
  }

  /** Bytes of the pictures that its calls show, each once. */
  get pictureBytes(): number {
    return this.#pictureBytes;
  }

  /** Number of stored bytes about its tokens: the experts that they took, and the tokens that the sampling kept. */
  get numberBytes(): number {
    return this.#numberBytes;
  }

  /** Tool runs begun so far. */
  get toolRuns(): number {
    return this.#toolRuns;
  }

  get spent(): Spent {
    return this.#spent;
  }

  /** The budget for which its harness was refused, or cut, and did not get over it; null while all of them last. */
  get endedBy(): BudgetName | null {
    return this.#endedBy;
  }

  /** What ended it from our side, for the rollout's record: the code of the refusal that the harness got. */
  get stopReason(): "budget_spent" | null {
    return this.#endedBy && "budget_spent";
  }

  get tries(): Tries {
    return this.#tries;
  }

  /** The error that the harness was told last in its work; null once an answer has reached it again. */
  get lastError(): ErrorRecord | null {
    return this.#lastError;
  }

  /** The same of the harness's own turns alone (own-turn.ts). */
  get lastFailure(): LastFailure | null {
    return this.#lastFailure;
  }

  /** The revision of the last reward. */
  get revision(): number {
    return this.#revision;
  }

  get sealed(): string | null {
    return this.#sealed;
  }

  /** When its replayed part was over; null where it has none, or where that part is not over. */
  get replayEnded(): ReplayEnded | null {
    return this.#replayEnded;
  }

  /** Earlier calls for which the client of this one no longer waits: it repeats a failed request, or continues from an answer. */
  supersededBy(call: Call): Call[] {
    const earlier = [this.#calls.get(call.begun.retry_of ?? ""), this.#readBefore(call)];
    return earlier.filter((one) => one !== undefined);
  }

  apply(line: LogLine, made: MadeOfEntry = {}): void {
    switch (line.type) {
      case "tools":
        this.#tools.set(line.tools_hash, line.tools);
        break;
      case "call_begun":
        this.#begun(line, made);
        break;
      case "tried":
        this.#tried(line);
        break;
      case "call_finished":
        this.#finished(line, made);
        break;
      case "answered":
      case "replayed":
        this.#answered(line);
        break;
      case "refused":
        this.#refused(line);
        break;
      case "tool_begun":
        this.#toolRuns = Math.max(this.#toolRuns, line.ordinal + 1);
        break;
      case "conversation":
        this.#countPictures(line.messages);
        this.#conversations.set(line.conversation_id, line);
        break;
      case "deleted":
        this.#deleted.add(line.id);
        break;
      case "rewarded":
        this.#revision = Math.max(this.#revision, line.revision);
        break;
      case "replay_ended":
        this.#replayEnded = line;
        break;
      case "sealed":
        this.#seal(line.reason);
        break;
      case "resumed":
        this.#sealed = null;
        if (line.place) this.#opened = openedAs(this.#opened, line);
        break;
      case "damaged":
        this.#damaged.push(line);
        // That it was sealed stays true, whatever the reason was.
        if (line.entry_type === "sealed") this.#seal("unknown: the line of the log that says it is damaged");
    }
  }

  /** One that goes on from a call that the log does not hold is left out. */
  #begun(entry: CallBegun, made: MadeOfEntry): void {
    const call = made.call ?? this.#unfold(entry);
    if (!call) return;
    const superseded = this.supersededBy(call);
    this.#countPictures(entry.messages.new);
    this.#calls.set(call.id, call);
    this.#unanswered.add(call);
    for (const earlier of superseded) this.#unanswered.delete(earlier);
    this.#spent = afterBegun(this.#spent, call);
    this.#endedBy = endedBy(this.#endedBy, null);
    this.#callCount = Math.max(this.#callCount, entry.ordinal + 1);
  }

  #countPictures(messages: readonly Message[]): void {
    for (const part of imagesIn(messages)) {
      if (!isStored(part) || this.#pictures.has(part.sha256)) continue;
      this.#pictures.add(part.sha256);
      this.#pictureBytes += part.bytes;
    }
  }

  #tried(entry: Tried): void {
    const call = this.#calls.get(entry.call_id);
    if (!call) return;
    call.apply(entry);
    this.#tries = afterTry(this.#tries, this.opened.spec, call.begun, entry);
  }

  /** It can be found by its content, and its tokens count as spent. */
  #finished(entry: CallFinished, made: MadeOfEntry): void {
    const call = this.#calls.get(entry.call_id);
    if (!call) return;
    call.apply(entry, entry.prompt_ids && (made.prompt ?? this.#unfoldIds(entry.prompt_ids)));
    this.#spent = afterFinished(this.#spent, call);
    if (entry.routing) this.#numberBytes += routingBytesOf(entry.routing);
    if (entry.support) this.#numberBytes += supportBytesOf(entry.support);
    this.#emitted.add(call);
    if (entry.error?.budget) this.#endedBy = endedBy(this.#endedBy, entry.error.budget);
  }

  #answered(entry: Answered | Replayed): void {
    const call = this.#calls.get(entry.call_id);
    if (!call) return;
    call.apply(entry);
    if (entry.delivery === "complete") this.#unanswered.delete(call);
    if (entry.delivery === "complete") this.#noteOutcome(call.begun.request_class, null, call);
    // Where the client left before the error, the status shows it.
    else if (entry.type === "answered" && (entry.delivery === "error" || entry.status !== 200)) {
      const error = entry.error ?? call.outcome?.error;
      if (error) this.#noteOutcome(call.begun.request_class, { error, call }, call);
    }
  }

  #refused({ request_class = "unknown", parent_call_id = "", error }: Refused): void {
    this.#endedBy = endedBy(this.#endedBy, error.budget ?? null);
    this.#noteOutcome(request_class, { error, call: null }, this.#calls.get(parent_call_id) ?? null);
  }

  /**
   * Notes how a request ended for the harness: with an error, or with its answer (null). Side calls such as titles are not
   * noted: their end says nothing about the task's work. `last`: the call, or the one that it goes on from.
   */
  #noteOutcome(request_class: RequestClass, failure: LastFailure | null, last: Call | null): void {
    if (!workClasses.includes(request_class)) return;
    this.#lastError = failure?.error ?? null;
    if (failure === null || isOwnTurn(this.#calls, last)) this.#lastFailure = failure;
  }

  #seal(reason: string): void {
    this.#sealed ??= reason;
    for (const table of [this.#calls, this.#unanswered, this.#emitted, this.#tools, this.#conversations, this.#deleted]) table.clear();
  }

  /**
   * The call whose answer the client of this one has seen: by an id of ours, or by its text at the same position, unless
   * another turn with this text there may be the one that was read (as in reconstruct/log/outcome.ts).
   */
  #readBefore({ begun, messages }: Call): Call | undefined {
    const turn = begun.restored.findLast((one) => one.from_call_id === begun.parent_call_id);
    const earlier = turn && this.#calls.get(turn.from_call_id);
    if (!turn || !earlier || turn.evidence !== "content") return earlier;
    if (turn.status === "edited" || !isAnswerTo(earlier, messages.slice(0, turn.message_index))) return undefined;
    return this.#emitted.twinsOf(earlier).every((twin) => this.#unanswered.has(twin)) ? earlier : undefined;
  }

  #unfold(entry: CallBegun): Call | null {
    const { base_call_id, base_len, new: fresh } = entry.messages;
    const base = this.#calls.get(base_call_id ?? "");
    const conversation = base?.conversation ?? [];
    if (base_call_id !== null && conversation.length < base_len) return null;
    return new Call(withBase(entry, base?.begun.restored ?? []), [...conversation.slice(0, base_len), ...fresh]);
  }

  /** Null where they go on from ids that the log does not hold. */
  #unfoldIds({ base_call_id, base_len, new: fresh }: Delta<number>): IdText | null {
    if (base_call_id === null || base_len === 0) return IdText.of(fresh);
    const base = this.#calls.get(base_call_id)?.idText;
    return !base || base.length < base_len ? null : base.extend(base.head(base_len), fresh);
  }
}
