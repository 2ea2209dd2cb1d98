/**
 * A harness is driven again through recorded turns. Its requests are matched by their place (the conversation, the agent, the
 * turn that they follow), never by their bytes; each is held against the recorded one, and the engine gets the recorded one.
 */
import { AlidadeError } from "../../base/errors.ts";
import type { Message, NeutralRequest, Tool } from "../../base/schema/message.ts";
import type { CallFinished, Compared, ReplayClass, ReplayEnded } from "../../base/schema/session-log.ts";
import { sameJson } from "../../base/wire/same-json.ts";
import type { CallLabels } from "../dialects/index.ts";
import type { Call } from "../session/call.ts";
import { type CallSpan, pausedWithin } from "../session/paused-within.ts";
import { compareRequests, type RequestComparison, rankOf, shortened, withSettings } from "./compare-requests.ts";
import { type Cut, isAnswered } from "./cut.ts";
import { Heard, type RestoredRequest } from "./heard.ts";
import { isWork } from "./is-work.ts";
import { LikelyCalls, mostCompared } from "./likely-calls.ts";
import { clockAt, type RecordedMoment } from "./recorded-clock.ts";
import { RecordedOrder } from "./recorded-order.ts";
import type { RecordedCall, SessionRecording } from "./recording.ts";

export type ReplayOptions = {
  recording: SessionRecording;
  cut: Cut;
  /** What comes behind the replayed part: samples of an engine, or nothing. */
  after: "sample" | "stop";
  /** Other words than the recorded ones end the replay, as another structure does. */
  words: "end" | "go_on";
  /** The engine renders the prompt behind the replayed part: it need not be the recorded one. */
  rendered?: boolean;
  /** The last answer, given by hand. */
  edited?: RecordedCall | null;
  /** The recording is the session's own, of a process that died: its calls are given again, and are its own as before. */
  isOwn?: boolean;
  /** How long an answer waits at least for what was recorded before it, if nothing comes at all. */
  leastWaitMs?: number;
};

export type ReplayRequest = { dialect: string; labels: CallLabels; request: NeutralRequest; sent: RestoredRequest };

/** A request at a recorded place. `isAnswered`: from the record. */
export type RecordedPlace = { recorded: RecordedCall; isAnswered: boolean; comparison: RequestComparison };

/** The request as the engine gets it, and its place; null where the record has none for it. */
export type PlacedRequest = {
  request: NeutralRequest;
  restored: RestoredRequest;
  /** Under the recorded name of its agent, where the session goes on with its own record. */
  labels: CallLabels;
  placed: RecordedPlace | null;
  /** The record has it, but only behind the replayed part. */
  isLater: boolean;
};

export class Replay {
  readonly #options: ReplayOptions;
  readonly #byId: ReadonlyMap<string, RecordedCall>;
  readonly #byParent: ReadonlyMap<string | null, LikelyCalls>;
  /** Turns behind which the replayed part has another one. */
  readonly #continued: ReadonlySet<string>;
  readonly #required: readonly RecordedCall[];
  readonly #answered: readonly RecordedCall[];
  readonly #spans: readonly CallSpan[];
  readonly #heard = new Heard();
  /** Recorded tool lists, by the lists that were sent in their place. */
  readonly #tools: { sent: readonly Tool[]; recorded: readonly Tool[] }[] = [];
  readonly #taken = new Set<string>();
  readonly #order: RecordedOrder;
  /** Recorded names of sub-agents, which harnesses draw anew, by those that they have now. */
  readonly #agents = new Map<string, string>();
  readonly #stopped = Promise.withResolvers<void>();
  #began: number | null = null;
  #how: ReplayEnded["how"] | null = null;

  constructor(options: ReplayOptions) {
    this.#options = options;
    this.#byId = new Map(options.recording.calls.map((one) => [one.call.id, one]));
    const byParent = Map.groupBy(options.recording.calls, ({ call }) => call.begun.parent_call_id ?? null);
    this.#byParent = new Map([...byParent].map(([parent, calls]) => [parent, new LikelyCalls(calls)]));
    this.#answered = options.recording.calls.filter(({ call }) => options.cut.answered.has(call.id));
    this.#spans = this.#answered.map(toSpan);
    this.#continued = this.#findContinued();
    this.#required = this.#findRequired();
    this.#order = new RecordedOrder(options.recording, options.cut, options.leastWaitMs);
  }

  get isRendered(): boolean {
    return this.#options.rendered ?? false;
  }

  /** It goes on with the session's own calls. */
  get isOwn(): boolean {
    return this.#options.isOwn ?? false;
  }

  get sourceId(): string {
    return this.#options.recording.opened.session_id;
  }

  /** From its first request to its end the session's clock stands still. */
  get isPlaying(): boolean {
    return this.#began !== null && this.#how === null;
  }

  /** No answer of it was needed, or all have been given. */
  get isOver(): boolean {
    return this.#how !== null;
  }

  /** Behind the replayed part nothing is asked of an engine. */
  get stops(): boolean {
    return this.#options.after === "stop";
  }

  /** Resolves when the harness has asked for more than it is answered: it has nothing left to do. */
  get stopped(): Promise<void> {
    return this.#stopped.promise;
  }

  stop(): void {
    this.#stopped.resolve();
  }

  /** The harness has ended: nothing more is waited for, and what it left running is answered no more. */
  leave(): void {
    this.#order.close();
  }

  /** null: it has not ended. */
  get how(): ReplayEnded["how"] | null {
    return this.#how;
  }

  /** Returns the message recorded `distance` messages after `turn` for this one. Returns `message` itself if none is recorded. */
  recordedFor(message: Message, turn: string, distance: number): Message {
    return this.#heard.recordedFor(message, turn, distance);
  }

  /** Throws `replay_diverged` once it has diverged, and `cancelled` once the harness has ended. */
  assertOnRecord(): void {
    if (this.#order.isClosed) throw new AlidadeError("cancelled", "the harness has ended: what it left running is answered no more");
    if (this.#how === "diverged") throw new AlidadeError("replay_diverged", "the replay has left its record: no more calls are answered");
  }

  /** Takes the request's place, which is then no other's. Throws `replay_diverged` once it has diverged. */
  place(asked: ReplayRequest): PlacedRequest {
    this.assertOnRecord();
    this.#began ??= Date.now();
    const restored = this.#heard.asRecorded(asked.sent);
    const request = this.#withRecordedTools(asked.request);
    const { placed, isLater } = this.#find(asked, request, restored);
    // The caller ends the replay, and says what came instead.
    if (placed === null || this.#isLeft(placed)) return { request, restored, labels: this.#ownLabels(asked.labels), placed, isLater };
    const { call } = placed.recorded;
    this.#taken.add(call.id);
    this.#order.asked(call.id);
    if (call.begun.agent !== "main") this.#agents.set(asked.labels.agent, call.begun.agent);
    const labels = this.#ownLabels(asked.labels);
    this.#heard.add(asked.sent, call.messages);
    const recordedTools = this.#toolsOf(placed.recorded);
    if (!sameJson(asked.request.tools, recordedTools)) this.#tools.push({ sent: asked.request.tools, recorded: recordedTools });
    return { request: this.#withRecordedTools(asked.request), restored: recordedRequest(call, restored.parent), labels, placed, isLater };
  }

  /** Gives the place back: the request turned out to be another one that comes again. */
  release({ recorded }: RecordedPlace, taken: Call): void {
    if (recorded.call.id === taken.id) return;
    this.#taken.delete(recorded.call.id);
    this.#taken.add(taken.id);
  }

  /** Gives the place back: its client has left without the answer, and may ask again. */
  giveBack({ recorded }: RecordedPlace): void {
    this.#taken.delete(recorded.call.id);
    this.#order.left(recorded.call.id);
  }

  /** Waits until all that had come before this answer in the record has come again. */
  untilDue({ recorded }: RecordedPlace, signal: AbortSignal): Promise<void> {
    return this.#order.until(() => this.#how === "diverged" || this.#order.isDue(recorded.call.id), { id: recorded.call.id, signal });
  }

  /** The answer has left, or its client has. */
  given({ recorded }: RecordedPlace): void {
    this.#order.given(recorded.call.id);
  }

  /**
   * Waits until the replay has come to its end, behind which this request is sampled: the main agent's next one until all sub-agents
   * have been given their recorded answers, and a sub-agent's until the main agent has asked for its next one.
   */
  untilEnd({ placed, restored }: PlacedRequest, signal: AbortSignal): Promise<void> {
    const { next } = this.#options.cut;
    const isNext = next === null || placed?.recorded === next;
    const from = placed?.recorded.call.id ?? restored.parent?.id ?? null;
    return this.#order.until(() => this.isOver || (isNext && this.#order.hasGivenBeside(from)), { id: from, signal });
  }

  /** Why the replay cannot go on with this request; null where it can. */
  whyDiverged({ placed, request, isLater }: PlacedRequest, { labels, sent }: ReplayRequest): string | null {
    if (placed !== null) {
      if (!this.#isLeft(placed)) return null;
      return `turn ${placed.recorded.number}: ${placed.comparison.difference}`;
    }
    if (this.isOver || isLater || !isWork(labels.request_class)) return null;
    const { parent } = sent;
    // A sub-agent that had asked nothing yet.
    if (parent === null && this.isOwn && labels.agent !== "main") return null;
    const known = this.#byId.get(parent?.id ?? "");
    // What follows a turn that was sampled here is new, as is what follows the last one of the record.
    if (parent !== null && known === undefined) return null;
    if (parent !== null && !this.#continued.has(parent.id)) return null;
    const after = known ? `behind turn ${known.number}` : "at the beginning of a conversation";
    return `the record has no request of ${shortened(labels.agent)} with ${request.messages.length} messages ${after}`;
  }

  /** All answers that the harness must be given have been. */
  get hasGivenAll(): boolean {
    const { cut } = this.#options;
    return cut.next === null && this.#required.every((one) => this.#taken.has(one.call.id));
  }

  /** The entry that says how it ended; null where that is said already. Call it once it is known. */
  end(how: ReplayEnded["how"], difference: string | null): ReplayEnded | null {
    if (this.#how !== null) return null;
    this.#how = how;
    this.#order.move();
    const time = Date.now();
    const turns = [...this.#taken].filter((id) => this.#options.cut.answered.has(id)).length;
    return {
      type: "replay_ended",
      time,
      how,
      turns,
      difference,
      ...(this.#order.whyLost !== null && { out_of_order: this.#order.whyLost }),
      recorded_ms: this.#recordedMs(),
      played_ms: time - (this.#began ?? time),
    };
  }

  compared(placed: RecordedPlace | null, difference: string | null): Compared {
    if (placed === null) return { type: "compared", time: Date.now(), call_id: null, class: "structure", difference };
    const { class: name, difference: found } = placed.comparison;
    return { type: "compared", time: Date.now(), call_id: placed.recorded.call.id, class: name, difference: found };
  }

  /** The recorded call whose answer is given for this one: another where it was written by hand. */
  answerOf(placed: RecordedPlace): RecordedCall {
    const { edited } = this.#options;
    return edited?.call.id === placed.recorded.call.id ? edited : placed.recorded;
  }

  /** What the record's clock said when this call was begun and had ended: replayed again, its own times are those of a replay. */
  clockOf({ recorded }: RecordedPlace): NonNullable<CallFinished["recorded_ms"]> {
    const kept = recorded.finished?.recorded_ms;
    if (kept !== undefined) return kept;
    const [begin, end] = [momentOfBegin(recorded), momentOfEnd(recorded)];
    const before = this.#answered.map(momentOfEnd).filter(({ at }) => at <= end.at);
    const begun = this.#msAt([...before.filter(({ at }) => at <= begin.at), begin]);
    return { begun, ended: Math.max(begun, this.#msAt([...before, end])) };
  }

  #isLeft({ comparison }: RecordedPlace): boolean {
    return comparison.class === "structure" || (comparison.class === "words" && this.#options.words === "end");
  }

  /** The most alike of the recorded calls at this place that no request has taken yet. */
  #find({ dialect, labels }: ReplayRequest, request: NeutralRequest, restored: RestoredRequest): FoundPlace {
    const { cut } = this.#options;
    let best: RecordedPlace | null = null;
    let later: RecordedPlace | null = null;
    const compared = new Set<RecordedCall>();
    for (const recorded of this.#byParent.get(restored.parent?.id ?? null)?.inOrder(restored.messages) ?? []) {
      if (compared.has(recorded)) continue;
      if (compared.size === mostCompared) break;
      const { begun } = recorded.call;
      if (this.#taken.has(recorded.call.id) || begun.dialect !== dialect || !this.#isSameAgent(begun, labels)) continue;
      const isGiven = isAnswered(cut, recorded);
      const isIn = isGiven || recorded === cut.next || cut.open.has(recorded.call.id);
      if (!isIn && (cut.next === null || recorded.number < cut.next.number)) continue;
      compared.add(recorded);
      const comparison = compareRequests(
        { messages: recorded.call.messages, tools: this.#toolsOf(recorded) },
        { messages: restored.messages, tools: request.tools },
      );
      const one = { recorded, isAnswered: isGiven, comparison };
      if (isIn && isCloser(one, best)) best = one;
      else if (!isIn && isCloser(one, later)) later = one;
      if (isIn && comparison.class === "equal") break;
    }
    // Conversations that begin alike may stand on both sides of the cut. What follows a turn has its place at the first one.
    const isLater = later?.comparison.class !== "structure" && (restored.parent === null ? isCloser(later, best) : best === null);
    if (later !== null && isLater) return { placed: null, isLater };
    // Behind the replayed part a request that only stands at a recorded place is a new one.
    if (best === null || (this.isOver && best.comparison.class === "structure")) return { placed: null, isLater: false };
    const { withheld, tool_choice, requested_sampling: sampling } = best.recorded.call.begun;
    const comparison = withSettings(best.comparison, { tool_choice: withheld?.tool_choice ?? tool_choice, sampling }, request);
    return { placed: { ...best, comparison }, isLater: false };
  }

  #isSameAgent(recorded: { agent: string; request_class: CallLabels["request_class"] }, now: CallLabels): boolean {
    if (isWork(recorded.request_class) !== isWork(now.request_class)) return false;
    if (!isWork(now.request_class) && recorded.request_class !== now.request_class) return false;
    if ((recorded.agent === "main") !== (now.agent === "main")) return false;
    const known = this.#agents.get(now.agent);
    if (known !== undefined) return known === recorded.agent;
    return recorded.agent === "main" || ![...this.#agents.values()].includes(recorded.agent);
  }

  #findContinued(): Set<string> {
    const { recording, cut } = this.#options;
    const isIn = (one: RecordedCall): boolean => cut.answered.has(one.call.id) || one === cut.next || cut.open.has(one.call.id);
    const within = recording.calls.filter((one) => isWork(one.call.begun.request_class) && isIn(one));
    return new Set(within.flatMap(({ call }) => call.begun.parent_call_id ?? []));
  }

  /**
   * Answers that a replay to the end must give: those that another recorded turn goes on from, and the last one; of the session's
   * own calls all that had arrived, for what they brought about is to be there again.
   */
  #findRequired(): RecordedCall[] {
    const { recording, cut } = this.#options;
    const isLast = (one: RecordedCall): boolean => (this.isOwn ? one.call.delivery === "complete" : one === cut.last);
    return recording.calls.filter(
      (one) => cut.answered.has(one.call.id) && isWork(one.call.begun.request_class) && (isLast(one) || this.#continued.has(one.call.id)),
    );
  }

  #ownLabels(labels: CallLabels): CallLabels {
    return this.isOwn ? { ...labels, agent: this.#agents.get(labels.agent) ?? labels.agent } : labels;
  }

  #toolsOf({ call }: RecordedCall): readonly Tool[] {
    return this.#options.recording.tools.get(call.begun.tools_hash ?? "") ?? [];
  }

  #withRecordedTools(request: NeutralRequest): NeutralRequest {
    const known = this.#tools.find(({ sent }) => sameJson(sent, request.tools));
    return known ? { ...request, tools: [...known.recorded] } : request;
  }

  /** From the first call to the end of the replayed part, as the session's clock counted it. */
  #recordedMs(): number {
    const { next } = this.#options.cut;
    const kept = this.#answered.flatMap(({ finished }) => finished?.recorded_ms?.ended ?? []);
    const nextMs = next?.finished?.recorded_ms?.begun;
    const sampled = this.#answered.filter(({ finished }) => finished?.recorded_ms === undefined).map(momentOfEnd);
    const moments = next === null || nextMs !== undefined ? sampled : [...sampled, momentOfBegin(next)];
    return [...kept, nextMs ?? 0].reduce((most, ms) => Math.max(most, ms), this.#msAt(moments));
  }

  /** Returns the session's clock at the latest of these moments, in milliseconds since the first answered call. */
  #msAt(moments: readonly RecordedMoment[]): number {
    const [first] = this.#answered;
    if (first === undefined) return 0;
    return clockAt(this.#options.recording.clock, moments, first.call.begun.time, (from, to) => pausedWithin(this.#spans, from, to));
  }
}

function momentOfBegin({ call, begunAt }: RecordedCall): RecordedMoment {
  return { at: begunAt, time: call.begun.time };
}

function momentOfEnd({ call, begunAt, endedAt }: RecordedCall): RecordedMoment {
  return { at: endedAt ?? begunAt, time: call.outcome?.time ?? call.begun.time };
}

function toSpan({ call: { begun, outcome } }: RecordedCall): CallSpan {
  return { from: begun.time, to: outcome?.time ?? null, pauses: outcome?.pauses ?? [] };
}

type FoundPlace = Pick<PlacedRequest, "placed" | "isLater">;

/** Sub-agents that work side by side may be told the same but for a number: then the one with less between it and the record. */
function isCloser(one: RecordedPlace | null, other: RecordedPlace | null): boolean {
  if (one === null || other === null) return one !== null;
  const ranks = rankOf(one.comparison.class) - rankOf(other.comparison.class);
  return ranks < 0 || (ranks === 0 && one.comparison.apart < other.comparison.apart);
}

/** As the engine got it then. The parent is the session's own copy of the recorded one. */
function recordedRequest({ messages, begun }: Call, parent: Call | null): RestoredRequest {
  return { messages, restored: begun.restored, parent };
}

/** The classes of a replay's requests, counted. */
export function countClasses(compared: readonly { class: ReplayClass }[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { class: name } of compared) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
