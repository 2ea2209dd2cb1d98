/** The sessions of one proxy: opened, found by key, and rebuilt after a crash. */
import { hashKey, newId, newKey } from "../schema/ids.ts";
import { logSchemaVersion, SessionSpec } from "../schema/session-log.ts";
import type { Store } from "../store/index.ts";
import { rebuildSession } from "./rebuild.ts";
import { Session } from "./session.ts";

export class Sessions implements AsyncDisposable {
  readonly store: Store;
  readonly #version: string;
  readonly #byId = new Map<string, Session>();
  readonly #byKeyHash = new Map<string, Session>();

  constructor(store: Store, version: string) {
    this.store = store;
    this.#version = version;
  }

  /** Opens a session; its key is given out once, here, and only its hash is kept. */
  async open(spec: Partial<SessionSpec>): Promise<{ session: Session; key: string }> {
    const id = newId("ses");
    const key = newKey();
    const log = await this.store.open(id);
    const session = new Session({ id, keyHash: hashKey(key), spec: SessionSpec.parse(spec), log, started: Date.now() });
    await session.record({
      type: "opened",
      schema_version: logSchemaVersion,
      time: session.started,
      session_id: id,
      key_hash: session.keyHash,
      spec: session.spec,
      alidade_version: this.#version,
    });
    this.#keep(session);
    return { session, key };
  }

  /** Brings back every session of the store that was not sealed: their keys work on. Returns how many. */
  async rebuild(): Promise<number> {
    let count = 0;
    for (const id of await this.store.list()) {
      if (this.#byId.has(id)) continue;
      const session = await rebuildSession(this.store, id);
      if (session.sealed === null) count++;
      this.#keep(session);
    }
    return count;
  }

  get(id: string): Session | undefined {
    return this.#byId.get(id);
  }

  byKey(key: string): Session | undefined {
    return this.#byKeyHash.get(hashKey(key));
  }

  all(): Session[] {
    return [...this.#byId.values()];
  }

  /** Seals it and lets go of its memory; the log stays in the store. */
  async close(session: Session, reason: string): Promise<void> {
    await session.seal(reason);
    await session.log[Symbol.asyncDispose]();
    this.#byId.delete(session.id);
    this.#byKeyHash.delete(session.keyHash);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const session of this.all()) {
      await Promise.allSettled(session.inFlight.map((call) => call.generation?.cancel("the proxy is stopping")));
      await Promise.allSettled(session.inFlight.map((call) => call.settled));
      while (session.background.size > 0) await Promise.allSettled(session.background);
      await session.log[Symbol.asyncDispose]();
    }
    this.#byId.clear();
    this.#byKeyHash.clear();
  }

  #keep(session: Session): void {
    this.#byId.set(session.id, session);
    this.#byKeyHash.set(session.keyHash, session);
  }
}
