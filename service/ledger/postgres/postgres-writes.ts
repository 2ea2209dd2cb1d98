/** What a write of the ledger sets off in other processes and in other groups: notices, groups that may begin, and ends in parts. */
import { Changes } from "../../../base/host/changes.ts";
import { admit, setsThatWait } from "./admit.ts";
import type { Notice, Notices } from "./connection/notices.ts";
import type { PostgresDatabase, Transaction } from "./connection/postgres-database.ts";
import { type EndedPart, endSome } from "./ends/end-some.ts";
import { endingsOf } from "./ends/endings.ts";
import { setsToSettle, settleSome } from "./sets.ts";
import { tryLock } from "./tables.ts";

export class PostgresWrites {
  readonly ending = new Changes();
  readonly #db: PostgresDatabase;
  readonly #notices: Notices;
  readonly #atOnce: number;

  /** `atOnce`: rollouts that end in one transaction. */
  constructor(db: PostgresDatabase, notices: Notices, atOnce: number) {
    this.#db = db;
    this.#notices = notices;
    this.#atOnce = atOnce;
  }

  /** The word goes out with the commit, and not without it. What lets nodes claim more may let groups begin too. */
  async telling<T>(notice: Notice, work: (db: Transaction) => Promise<T>, isNews: (done: T) => boolean = () => true): Promise<T> {
    const done = await this.#saying(notice, work, isNews);
    if (notice === "queued" && isNews(done)) await this.admit();
    return done;
  }

  /** What came before is committed, so a failure here is none of it: a service admits with its next look. */
  admit(): Promise<void> {
    return this.#admitAll().catch(() => undefined);
  }

  /** A first part at once of what was ordered to end in a set. The rest is for `endMore`; so is all of it where it fails now, for what ordered it stands. */
  endFirst(set: string): Promise<void> {
    return this.#endPart(set).catch(() => this.ending.add());
  }

  /** The next part of what is to end. Returns how many ended. */
  async endMore(): Promise<number> {
    for (const number of await this.#db.statements((db) => endingsOf(db, null))) {
      const { ended, isDone } = await this.#end(number, true);
      if (ended > 0 || !isDone) return ended;
    }
    for (const id of await this.#db.statements(setsToSettle)) {
      const settled = await this.#db.transaction((db) => settleSome(db, id, this.#atOnce));
      if (settled > 0) return settled;
    }
    return 0;
  }

  async #saying<T>(notice: Notice, work: (db: Transaction) => Promise<T>, isNews: (done: T) => boolean): Promise<T> {
    const done = await this.#db.transaction(async (db) => {
      const result = await work(db);
      if (isNews(result)) await db.run("SELECT pg_notify($1, $2)", this.#notices.channel, notice);
      return result;
    });
    if (isNews(done)) this.#notices.heard(notice);
    return done;
  }

  async #admitAll(): Promise<void> {
    // A transaction each: one that waits for a long submission would hold up claims of the other sets.
    for (const id of await this.#db.statements(setsThatWait)) {
      const some = () =>
        this.#saying(
          "queued",
          (db) => admit(db, id),
          (groups) => groups > 0,
        );
      while ((await some()) > 0);
    }
  }

  async #endPart(set: string): Promise<void> {
    let left = this.#atOnce;
    for (const number of await this.#db.statements((db) => endingsOf(db, set))) {
      const { ended, isDone } = await this.#end(number, false);
      left -= ended;
      if (isDone && left > 0) continue;
      this.ending.add();
      return;
    }
  }

  /** `isOneOfMany`: one process at a time goes on with orders, or all would wait for each other; the others leave it alone. */
  #end(number: number, isOneOfMany: boolean): Promise<EndedPart> {
    return this.telling(
      "queued",
      async (db) => {
        if (isOneOfMany && !(await tryLock(db, "endings"))) return { ended: 0, isDone: false };
        return endSome(db, number, this.#atOnce);
      },
      ({ isDone }) => isDone,
    );
  }
}
