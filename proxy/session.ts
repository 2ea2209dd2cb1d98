/**
 * One run of one harness as the proxy sees it: its calls, the tables that restore and match look into, and its log.
 * Everything here can be rebuilt from the log (rebuild.ts).
 */
import { AlidadeError } from "../errors.ts";
import { hashOf } from "../schema/ids.ts";
import type { Tool, Turn } from "../schema/message.ts";
import type { Answered, LogEntry, SessionSpec } from "../schema/session-log.ts";
import type { SessionLog } from "../store/index.ts";
import { type Call, normalText } from "./call.ts";

export class Session {
  readonly id: string;
  readonly keyHash: string;
  readonly spec: SessionSpec;
  readonly log: SessionLog;
  readonly calls = new Map<string, Call>();
  /** Latest call of each request identity. */
  readonly byFingerprint = new Map<string, Call>();
  /** Latest call that said this text: for assistant turns that carry no id of ours. */
  readonly byText = new Map<string, Call>();
  readonly tools = new Map<string, Tool[]>();
  readonly started: number;
  /** Work that goes on after an answer has left (decoding of differences); a seal waits for it. */
  readonly background = new Set<Promise<void>>();
  sealed: string | null = null;
  /** What ended it from our side, for the rollout's record: the code of the refusal that the harness got. */
  stopReason: string | null = null;
  revision = 0;

  constructor(options: { id: string; keyHash: string; spec: SessionSpec; log: SessionLog; started: number }) {
    this.id = options.id;
    this.keyHash = options.keyHash;
    this.spec = options.spec;
    this.log = options.log;
    this.started = options.started;
  }

  /** Appends to the log, and only when that is durable to the tables. */
  async record(...entries: LogEntry[]): Promise<void> {
    await this.log.append(...entries);
  }

  add(call: Call): void {
    this.calls.set(call.id, call);
    this.byFingerprint.set(call.begun.fingerprint, call);
  }

  /** Takes back a call that could not be written down: as far as anybody knows it never was. */
  forget(call: Call): void {
    this.calls.delete(call.id);
    if (this.byFingerprint.get(call.begun.fingerprint) === call) this.byFingerprint.delete(call.begun.fingerprint);
  }

  /** Makes a finished call findable by what it said. */
  learn(call: Call): void {
    const turn = call.turn;
    if (turn) this.byText.set(normalText(turn.message), call);
  }

  /** The hash under which a tool list is stored; writes the list when it is new. Null for no tools. */
  async rememberTools(tools: Tool[]): Promise<string | null> {
    if (tools.length === 0) return null;
    const hash = hashOf(tools).slice(0, 32);
    if (!this.tools.has(hash)) {
      await this.record({ type: "tools", time: Date.now(), tools_hash: hash, tools });
      this.tools.set(hash, tools);
    }
    return hash;
  }

  assertOpen(): void {
    if (this.sealed !== null)
      throw new AlidadeError("session_sealed", `session ${this.id} is sealed (${this.sealed}): it takes no more calls`);
  }

  /** Calls that count as turns: not the harness's repetition of one that failed. */
  get turns(): number {
    return countIf(this.calls.values(), (call) => call.begun.retry_of === null);
  }

  get inFlight(): Call[] {
    return [...this.calls.values()].filter((call) => call.generation !== null);
  }

  /** Ends the session: what is running is cancelled at the engine, what was finished stays. Idempotent. */
  async seal(reason: string): Promise<void> {
    if (this.sealed === null) {
      this.sealed = reason;
      await this.record({ type: "sealed", time: Date.now(), reason });
    }
    await Promise.allSettled(this.inFlight.map((call) => call.generation?.cancel(`the session was sealed: ${reason}`)));
    while (this.background.size > 0) await Promise.allSettled(this.background);
  }

  async answered(call: Call, delivery: Answered["delivery"], status: number): Promise<void> {
    call.delivery = delivery;
    await this.record({ type: "answered", time: Date.now(), call_id: call.id, delivery, status });
  }

  /** Writes a reward; late or twice is a new revision, and the last one counts. */
  async reward(reward: number | null, components: Record<string, number | null>): Promise<number> {
    const revision = this.revision + 1;
    await this.record({ type: "rewarded", time: Date.now(), revision, reward, components });
    this.revision = revision;
    return revision;
  }

  turnOf(callId: string): Turn | null {
    return this.calls.get(callId)?.turn ?? null;
  }
}

function countIf<T>(items: Iterable<T>, test: (item: T) => boolean): number {
  let count = 0;
  for (const item of items) if (test(item)) count++;
  return count;
}
