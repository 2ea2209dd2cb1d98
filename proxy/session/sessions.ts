/** The sessions of one proxy: opened, found by key, and rebuilt after a crash. */
import { AlidadeError } from "../../base/errors.ts";
import { hashKey, newId, newKey } from "../../base/schema/ids.ts";
import { logSchemaVersion, type Opened, type Resumed } from "../../base/schema/session-log.ts";
import { type NewSession, SessionSpec } from "../../base/schema/session-spec.ts";
import type { GivenPlace } from "../calls/given-place.ts";
import { withBudgets } from "../http/bounds.ts";
import { countFinished, type SessionRecording, toRecording } from "../replay/recording.ts";
import type { Store } from "../store/index.ts";
import { LazyLog } from "./lazy-log.ts";
import { rebuildSession } from "./rebuild.ts";
import { type AttemptCounting, RolloutAttempts } from "./rollout-attempts.ts";
import { Session } from "./session.ts";

/** `place`: the rollout that goes on with the session; left out: that of before. */
export type ResumedAs = Pick<Resumed, "attempt" | "place">;

export type OnError = (error: unknown, what: string) => void;

export class Sessions implements AsyncDisposable {
  readonly store: Store;
  readonly #version: string;
  readonly #onError: OnError;
  readonly #byId = new Map<string, Session>();
  readonly #byKeyHash = new Map<string, Session>();
  /** By the hash of their key, while their first line is being written. */
  readonly #opening = new Map<string, Promise<Session>>();
  readonly #attempts = new RolloutAttempts();
  /** Sessions whose caller counts the attempts of their rollout. */
  readonly #counted = new WeakSet<Session>();
  /** In memory only while they are being written. */
  readonly #visited = new Map<string, { session: Promise<Session | null>; visitors: number }>();

  constructor(store: Store, version: string, onError: OnError) {
    this.store = store;
    this.#version = version;
    this.#onError = onError;
  }

  /**
   * Opens a session; its key is given out once, here, and only its hash is kept. Throws `request_invalid` for a member of
   * no rollout, and (409) where the rollout has a session of this attempt and member. `counting`: with "caller" that is known of
   * sessions in memory alone.
   */
  async open(request: Partial<NewSession>, counting: AttemptCounting = "here"): Promise<{ session: Session; key: string }> {
    const key = newKey();
    const session = await this.#open(request, hashKey(key));
    if (counting === "caller") this.#counted.add(session);
    return { session, key };
  }

  /**
   * Brings back the session of a process that died, or of a parked rollout, for another attempt, with what its log holds. What sealed it
   * holds no more. Throws `not_found` where the log is gone, and `store_error` where it is damaged.
   */
  async resume(id: string, { attempt, place }: ResumedAs): Promise<{ session: Session; recording: SessionRecording }> {
    const lines = await this.store.read(id);
    const recording = toRecording(id, lines);
    const session = new Session(recording.opened, new LazyLog(this.store, id));
    // A seal empties what is known of its calls.
    for (const line of lines) if (line.type !== "sealed") session.bringBack(line);
    const isOther = place !== undefined && place.rollout_id !== session.spec.rollout_id;
    await session.record({ type: "resumed", time: Date.now(), attempt, ...countFinished(recording), ...(isOther && { place }) });
    this.#attempts.add(id, { ...session.spec, attempt });
    this.#counted.add(session);
    this.#keep(session);
    return { session, recording };
  }

  /**
   * The session for a call of this one that names other ids: as this one, with these ids, opened at the first such call.
   * Its key follows from this session's key and the ids, so that it is found again after a restart.
   */
  async within(session: Session, { ids, labels }: GivenPlace): Promise<Session> {
    const { attempt: _, ...spec } = session.spec;
    const own = placeIn(spec);
    const wanted = { ...own, ...ids };
    // Nearly every call: nothing is hashed for it.
    if (JSON.stringify(wanted) === JSON.stringify(own)) return session;
    const key_hash = hashKey(JSON.stringify([session.state.opened.key_hash, wanted]));
    const known = this.#byKeyHash.get(key_hash);
    if (known) return known;
    session.assertOpen();
    const opening =
      this.#opening.get(key_hash) ??
      this.#open({ ...spec, ...wanted, labels: { ...spec.labels, ...labels } }, key_hash).finally(() => this.#opening.delete(key_hash));
    this.#opening.set(key_hash, opening);
    return opening;
  }

  async #open(request: Partial<NewSession>, key_hash: string): Promise<Session> {
    const id = newId("ses");
    const log = new LazyLog(this.store, id);
    const opened: Opened = {
      type: "opened",
      schema_version: logSchemaVersion,
      time: Date.now(),
      session_id: id,
      key_hash,
      spec: this.#specOf(id, request),
      alidade_version: this.#version,
    };
    try {
      await log.append(opened);
    } catch (error) {
      this.#attempts.release(id, opened.spec);
      await log.close();
      throw error;
    }
    const session = new Session(opened, log);
    this.#keep(session);
    return session;
  }

  /**
   * Brings back the sessions of the store: the keys of open ones keep working, and sealed ones still take a reward. Damaged
   * lines are reported; a log without a readable session id is left out. The store must have no other owner, because its
   * files are written from now on.
   */
  async rebuild(): Promise<void> {
    for (const id of await this.store.list()) {
      if (this.#byId.has(id)) continue;
      try {
        const session = await rebuildSession(this.store, id);
        if (!session) continue;
        this.#attempts.add(id, session.spec);
        this.#keep(session);
        for (const { reason } of session.state.damaged)
          this.#onError(new AlidadeError("store_error", reason), `bringing back session ${id}, which goes on without it`);
      } catch (error) {
        this.#onError(error, `bringing back session ${id}, which is left out`);
      }
    }
  }

  get(id: string): Session | undefined {
    return this.#byId.get(id);
  }

  /**
   * Runs an action on a session that may be only in the store; null where it does not exist. Concurrent callers share one
   * object: two objects of one log would each count its revisions separately.
   */
  async visit<T>(id: string, body: (session: Session | null) => Promise<T>): Promise<T> {
    const known = this.#byId.get(id);
    if (known) return body(known);
    const visit = this.#visited.get(id) ?? { session: rebuildSession(this.store, id), visitors: 0 };
    this.#visited.set(id, visit);
    visit.visitors++;
    try {
      return await body(await visit.session);
    } finally {
      if (--visit.visitors === 0) {
        this.#visited.delete(id);
        await (await visit.session.catch(() => null))?.closeLog();
      }
    }
  }

  /**
   * By the id of the session, or by that of its rollout: the last attempt. Throws `request_invalid` (409) where several
   * sessions in memory have it, and `not_found`.
   */
  named(name: string): Session {
    const known = this.#byId.get(name);
    if (known) return known;
    const rollout = this.all().filter(({ spec }) => spec.rollout_id === name);
    const last = Math.max(...rollout.map(({ spec }) => spec.attempt));
    const [found, other] = rollout.filter(({ spec }) => spec.attempt === last);
    if (found && other)
      throw new AlidadeError("request_invalid", `rollout ${name} has the sessions ${found.id} and ${other.id}: name one of them`, {
        status: 409,
      });
    if (!found) throw new AlidadeError("not_found", `no session is named "${name}", and none in memory has that rollout_id`);
    return found;
  }

  byKey(key: string): Session | undefined {
    return this.#byKeyHash.get(hashKey(key));
  }

  all(): Session[] {
    return [...this.#byId.values()];
  }

  /** Seals it and drops it from memory; the log stays in the store. Throws `store_full` like a seal, and closing again goes on. */
  async close(session: Session, reason: string): Promise<void> {
    await session.seal(reason);
    // A reward that is being written is in the log before another one is counted there.
    await session.closeLog();
    const now = this.#byId.get(session.id);
    // Another attempt has opened the session again meanwhile.
    if (now !== undefined && now !== session) return;
    this.#byId.delete(session.id);
    this.#byKeyHash.delete(session.state.opened.key_hash);
    if (this.#counted.has(session)) this.#attempts.release(session.id, session.spec);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.all().map((session) => this.#leave(session)));
    this.#byId.clear();
    this.#byKeyHash.clear();
  }

  /** Not sealed: another process may go on with it. */
  async #leave(session: Session): Promise<void> {
    try {
      await session.settleAll("the proxy is stopping");
    } catch (error) {
      this.#onError(error, `writing down the last of session ${session.id}`);
    }
    await session.closeLog();
  }

  #specOf(id: string, request: Partial<NewSession>): SessionSpec {
    const spec = withBudgets(SessionSpec.parse(request));
    if (spec.member !== null && spec.rollout_id === null)
      throw new AlidadeError("request_invalid", `member "${spec.member}" belongs to no rollout: give rollout_id too`, {
        param: "rollout_id",
      });
    return { ...spec, attempt: this.#attempts.take(id, spec, request.attempt) };
  }

  #keep(session: Session): void {
    this.#byId.set(session.id, session);
    this.#byKeyHash.set(session.state.opened.key_hash, session);
  }
}

/** In one order, for its text is compared. */
function placeIn({ task_id, group_id, sample_index, rollout_id }: Omit<SessionSpec, "attempt">) {
  return { task_id, group_id, sample_index, rollout_id };
}
