/**
 * Copies the session log of an attempt while it runs. Sends a part after each finished call. The rollout never waits for a part. If the
 * node dies while a part is on its way, the call of that part is asked again. A place that refuses a part gets no more parts.
 */
import { type ErrorCode, messageOf } from "../../base/errors.ts";
import { untilAborted } from "../../base/host/until-aborted.ts";
import type { Media } from "../../base/media/media.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import type { LogEntry, LogLine } from "../../base/schema/session-log.ts";
import type { Session } from "../../proxy/index.ts";
import type { Store } from "../../proxy/store/index.ts";
import { type Blobs, LogCopyHead, logPartKey, longestLogCopy, packLogPart } from "../blobs/index.ts";

export type CopiedAttempt = {
  /** False: copies no log. */
  isOn: boolean;
  blobs: Blobs;
  /** The name of the rollout's blobs. */
  name: string;
  attempt: number;
  store: Pick<Store, "read" | "media">;
  /** Another rollout may go on from it, also if it ends by itself (`straggler_cut` with `rest: park`). */
  parks?: boolean;
  note: (text: string) => void;
};

/** Time for the last part, when an attempt is given back or may be parked. */
const lastPartMs = 5_000;

/** Short, because the rollout holds its place meanwhile. Copies that remain are removed with the blobs of the set. */
const removalMs = 30_000;

export class LogCopier {
  readonly #attempt: CopiedAttempt;
  readonly #stop = new AbortController();
  #session: Session | null = null;
  #head: LogCopyHead | null = null;
  #pending: LogEntry[] = [];
  /** A finished call is in no part yet. */
  #isDue = false;
  #isOver = false;
  /** The attempt has sampled a call of its own, after the replayed calls. */
  #hasSampled = false;
  #parts = 0;
  #length = 0;
  #pictures = new Set<string>();
  #working: Promise<void> | null = null;

  constructor(attempt: CopiedAttempt) {
    this.#attempt = attempt;
  }

  /** Call it after the session is opened and before its harness begins. Throws the signal's reason. */
  async follow(session: Session, record: RolloutRecord, signal: AbortSignal): Promise<void> {
    const { harness, harness_version, task_hash, resume } = record;
    if (!this.#attempt.isOn) return;
    this.#leave();
    // A part that is still being sent belongs to the earlier session. If the blobs cannot be reached, this takes minutes.
    await untilAborted(this.#working ?? Promise.resolve(), signal);
    this.#pending = [];
    this.#isDue = false;
    const lines = await untilAborted(this.#attempt.store.read(session.id), signal);
    if (!lines.every(isEntry)) return this.#end("its log is damaged");
    this.#head = LogCopyHead.parse({ session_id: session.id, harness, harness_version, task_hash, resume });
    this.#pictures = new Set();
    this.#session = session;
    session.onWritten = (entries) => {
      this.#hasSampled ||= entries.some(isOwnCall);
      this.#take(entries);
    };
    this.#take(lines);
  }

  /**
   * Ends the copy. `broken`: the code of the failure that broke the attempt; null: none. A stopped attempt goes on elsewhere, and an
   * ended one may if it is parked, so `close` waits for its last part. After another failure the rollout begins anew, because a replay would fail at the same place. But if the
   * attempt sampled no call of its own, the failure is this node's. Then the copy of an earlier attempt is kept for the next attempt.
   */
  async close(broken: ErrorCode | null): Promise<void> {
    this.#leave();
    const isNeeded = broken === "cancelled" || (broken === null && this.#attempt.parks === true);
    const timer = setTimeout(() => this.#stop.abort(new Error("its time is over")), isNeeded ? lastPartMs : 0);
    await this.#working;
    clearTimeout(timer);
    this.#isOver = true;
    if (broken !== null && broken !== "cancelled" && this.#hasSampled) await this.remove();
  }

  /**
   * Removes the copies of this attempt's log and of earlier ones. Call it if the rollout is over, or if no attempt may go on from them.
   */
  async remove(): Promise<void> {
    const { isOn, blobs, name, attempt, note } = this.#attempt;
    if (!isOn || (attempt === 1 && this.#parts === 0)) return;
    await blobs
      .removeLogs(name, attempt, AbortSignal.timeout(removalMs))
      .catch((error: unknown) => note(`${name}: copies of its log could not be removed: ${messageOf(error)}`));
  }

  #leave(): void {
    if (this.#session !== null) this.#session.onWritten = null;
    this.#session = null;
  }

  #take(entries: readonly LogEntry[]): void {
    if (this.#isOver) return;
    for (const entry of entries) this.#pending.push(entry);
    this.#isDue ||= entries.some(({ type }) => type === "call_finished");
    if (this.#isDue) this.#working ??= this.#work().finally(() => (this.#working = null));
  }

  async #work(): Promise<void> {
    try {
      while (this.#isDue && this.#head !== null) await this.#copy(this.#head, this.#pending.splice(0));
    } catch (error) {
      this.#end(messageOf(error));
    }
  }

  async #copy(head: LogCopyHead, entries: LogEntry[]): Promise<void> {
    const { blobs, name, attempt } = this.#attempt;
    this.#isDue = false;
    const json = JSON.stringify(entries);
    const { text, pack } = packLogPart(json, { head, pictures: this.#picturesIn(json) });
    this.#length += text.length;
    if (this.#length > longestLogCopy) throw new Error(`it is longer than ${longestLogCopy} characters`);
    await blobs.put(logPartKey(name, attempt, this.#parts + 1), await pack(), this.#stop.signal);
    this.#parts += 1;
  }

  #end(why: string): void {
    const { name, attempt, note } = this.#attempt;
    this.#isOver = true;
    this.#isDue = false;
    this.#pending = [];
    if (!this.#stop.signal.aborted)
      note(`${name}: the log of attempt ${attempt} is copied no further (${why}): where this node dies, another one goes on from there`);
  }

  /** The pictures that the JSON of entries names, without those of earlier parts. */
  #picturesIn(json: string) {
    const { media } = this.#attempt.store;
    if (media === undefined) return [];
    const named = new Set([...json.matchAll(/"sha256":"([0-9a-f]{64})"/g)].map(([, sha256 = ""]) => sha256));
    const hashes = [...named].filter((sha256) => !this.#pictures.has(sha256));
    return hashes.flatMap((sha256) => {
      this.#pictures.add(sha256);
      const bytes = readPicture(media, sha256);
      return bytes === null ? [] : [{ sha256, base64: bytes.toString("base64") }];
    });
  }
}

/** Returns null if the name is an agent's own text in the form of a picture. */
function readPicture(media: Media, sha256: string): Buffer | null {
  try {
    return media.read(sha256);
  } catch {
    return null;
  }
}

function isEntry(line: LogLine): line is LogEntry {
  return line.type !== "damaged";
}

function isOwnCall(entry: LogEntry): boolean {
  return entry.type === "call_finished" && entry.error === null && entry.replayed_from === undefined;
}
