/**
 * The ledger of several machines: one schema of a Postgres database. Any number of services and nodes open it. Leases are
 * held against the server's clock alone, so no clock of theirs matters.
 *
 * Claims are SQL of our own and no queue library: the order of claims, the fence and the result's row are one transaction over
 * the same rows, and a queue beside them would hold each state twice.
 */
import { Allocations, allocationPolicies } from "../allocation/index.ts";
import { type ControlChange, NodeReport, nextControl, pausedMs, stepInForce } from "../control-state.ts";
import type { EngineUse } from "../engine-places.ts";
import type { Gaps, Removal, Superseded } from "../expiry.ts";
import { specOf } from "../from-rows.ts";
import type { AttemptName, CancelOrder, Claim, ClaimedSets, KeptPlace, Lease, Ledger, NodeSpec, ParkedEnd } from "../ledger.ts";
import type { AttemptResult, GroupPart, SetSpec } from "../records.ts";
import { askedGroups } from "../submission.ts";
import { noteStep } from "./admit.ts";
import {
  beat,
  claim,
  drainNode,
  endAside,
  expire,
  finish,
  finishAlone,
  grant,
  join,
  leave,
  lookForAnswers,
  nodes,
  queueUnknown,
  release,
  reports,
  saveReport,
} from "./claims.ts";
import { postgresAddress } from "./connection/address.ts";
import { Looks } from "./connection/looks.ts";
import { Notices } from "./connection/notices.ts";
import { withPassword } from "./connection/password-file.ts";
import { loadPg } from "./connection/pg-library.ts";
import { type PoolUser, PostgresDatabase } from "./connection/postgres-database.ts";
import { countOn, setsToCount } from "./counts.ts";
import { cutOne } from "./ends/stop-groups.ts";
import { expireOf, removals, removed, setsThatMayExpire } from "./expire-results.ts";
import { controlOf, saveControl } from "./facts.ts";
import { type HoldPatience, heldBack, usualPatience } from "./held-back.ts";
import { leaveTheLine, trimTurns } from "./join-the-line.ts";
import { dropParked, letGo } from "./parked.ts";
import { PostgresWrites } from "./postgres-writes.ts";
import { prepare } from "./prepare.ts";
import { forget, keep, keepTally, lookForResults, resultOf, results, tallyOf, wholeGroups } from "./results.ts";
import { setOf } from "./set-row.ts";
import { cancel, drain, isOver, latestSets, putSet, setNamed, settleSome, stateOf, statesOf } from "./sets.ts";
import { submit } from "./submit.ts";
import { noteFenced, settled, superseded } from "./superseded.ts";
import { lock } from "./tables.ts";

/** Rollouts that end in one transaction: about 50 ms of the server. */
const mostEndsAtOnce = 1_000;

/** Slots under one hold of the lock. A hundred nodes with a hundred free slots each wait for each other's turns otherwise, beyond a statement's time. */
const mostAtOnce = 10;

/** `atOnce`: rollouts that end in one transaction. `patience`: with transactions of others. */
type PostgresOptions = { atOnce?: number | undefined; patience?: HoldPatience; allocations?: Allocations };

export class PostgresLedger implements Ledger {
  readonly id: string;
  readonly isShared = true;
  readonly #db: PostgresDatabase;
  readonly #writes: PostgresWrites;
  readonly #notices: Notices;
  readonly #results: Looks;
  readonly answered: Looks;
  readonly #atOnce: number;
  readonly #patience: HoldPatience;
  /** For what nothing was queued since a claim found less than it asked for. */
  readonly #dryAt = new Map<ClaimedSets, string>();

  /** Makes the tables where there are none. Throws `config_invalid` for an address that is none, `store_error` where nothing answers. */
  static async open(
    url: string,
    user: PoolUser = "service",
    { atOnce = mostEndsAtOnce, patience = usualPatience, allocations = new Allocations(allocationPolicies) }: PostgresOptions = {},
  ): Promise<PostgresLedger> {
    const address = postgresAddress(await withPassword(url));
    const pg = await loadPg();
    const db = new PostgresDatabase(pg, address, user, allocations);
    try {
      const id = await db.transaction((transaction) => prepare(transaction, address));
      const looks = {
        results: await Looks.begin((mark) => db.statements((asks) => lookForResults(asks, mark))),
        answered: await Looks.begin((mark) => db.statements((asks) => lookForAnswers(asks, mark))),
      };
      return new PostgresLedger(id, db, looks, new Notices(pg, address), { atOnce, patience });
    } catch (error) {
      await db[Symbol.asyncDispose]();
      throw error;
    }
  }

  private constructor(
    id: string,
    db: PostgresDatabase,
    { results, answered }: { results: Looks; answered: Looks },
    notices: Notices,
    { atOnce, patience }: { atOnce: number; patience: HoldPatience },
  ) {
    this.id = id;
    this.#db = db;
    this.#writes = new PostgresWrites(db, notices, atOnce);
    this.#notices = notices;
    this.#atOnce = atOnce;
    this.#patience = patience;
    this.#results = results;
    this.answered = answered;
  }

  get version(): number {
    return this.#results.version;
  }

  get ordered() {
    return this.#notices.ordered;
  }

  get claimable() {
    return this.#notices.claimable;
  }

  get ending() {
    return this.#writes.ending;
  }

  changed(seen: number, signal: AbortSignal, set?: string): Promise<number> {
    return this.#results.after(seen, signal, set);
  }

  putSet(key: string, spec: SetSpec, namespace = "") {
    return this.#db.transaction(async (db) => stateOf(db, await putSet(db, { namespace, key }, spec)));
  }

  setNamed(key: string, namespace: string) {
    return this.#db.statements((db) => setNamed(db, { namespace, key }));
  }

  namespaceOf(set: string) {
    return this.#db.statements(async (db) => String((await setOf(db, set)).namespace));
  }

  set(id: string) {
    return this.#db.statements((db) => stateOf(db, id));
  }

  specOf(id: string) {
    return this.#db.statements(async (db) => specOf(await setOf(db, id)));
  }

  latestSets(most: number, namespace?: string) {
    return this.#db.statements((db) => latestSets(db, most, namespace));
  }

  sets(namespace?: string) {
    return this.#db.statements((db) => statesOf(db, namespace));
  }

  async submit(set: string, parts: GroupPart[]) {
    const asked = await askedGroups(parts);
    const submitted = await this.#writes.telling("queued", (db) => submit(db, set, asked));
    await this.#writes.endFirst(set);
    return submitted;
  }

  async cancel(what: CancelOrder, reason: string) {
    const cancelled = await this.#writes.telling("queued", (db) => cancel(db, what, reason));
    await this.#writes.endFirst(what.set);
    return cancelled;
  }

  endMore() {
    return this.#writes.endMore();
  }

  isOver(set: string) {
    return this.#db.statements((db) => isOver(db, set));
  }

  drain(set: string) {
    return this.#writes.telling("queued", async (db) => {
      await drain(db, set);
      if ((await settleSome(db, set, this.#atOnce)) === this.#atOnce) this.ending.add();
      return stateOf(db, set);
    });
  }

  async join(node: NodeSpec) {
    const isNews = ({ lost }: { lost: number }): boolean => lost > 0;
    return (await this.#writes.telling("queued", (db) => join(db, node), isNews)).lease;
  }

  leave(lease: Lease) {
    return this.#writes.telling("queued", (db) => leave(db, lease));
  }

  async beat(lease: Lease, running: readonly AttemptName[]) {
    const { orders, unknown } = await this.#db.statements((db) => beat(db, lease, running));
    // Where that fails the next beat finds them again, and these orders stand.
    if (unknown.length > 0) await this.#writes.telling("queued", (db) => queueUnknown(db, lease, unknown)).catch(() => undefined);
    return orders;
  }

  grantPlaces(lease: Lease, uses: readonly EngineUse[]) {
    return this.#db.transaction((db) => grant(db, lease, uses));
  }

  /** Asked after each change by each node, so it asks the server only where something may be queued. */
  async claim(lease: Lease, free: number, from: ClaimedSets = "any"): Promise<Claim[]> {
    // With the epoch, because a lease that is over finds nothing where the node's next one does.
    const at = `${lease.epoch} ${this.#notices.queued}`;
    if (free <= 0 || this.#dryAt.get(from) === at) return [];
    const claims: Claim[] = [];
    while (claims.length < free) {
      const wanted = Math.min(free - claims.length, mostAtOnce);
      // What was claimed before a failure is the node's, and the next claim says what is wrong.
      const more = await this.#db
        .statements((db) => claim(db, lease, wanted, from))
        .catch((error: unknown) => (claims.length > 0 ? null : Promise.reject(error)));
      if (more === null) break;
      claims.push(...more);
      if (more.length === wanted) continue;
      this.#dryAt.set(from, at);
      break;
    }
    return claims;
  }

  release(name: AttemptName, broken: string | null) {
    return this.#writes.telling("queued", (db) => release(db, name, broken));
  }

  setAside(rollout: string, why: string) {
    return this.#writes.telling(
      "queued",
      (db) => endAside(db, rollout, why),
      (isEnded) => isEnded,
    );
  }

  async finish(name: AttemptName, result: AttemptResult) {
    const alone = await this.#db.statements((db) => finishAlone(db, name, result));
    if (alone?.isNews) await this.#writes.admit();
    const isNews = (one: { isNews: boolean }): boolean => one.isNews;
    const { end, set } = alone ?? (await this.#writes.telling("queued", (db) => finish(db, name, result), isNews));
    if (set !== null) await this.#writes.endFirst(set);
    if (end === "fenced") await this.#db.statements((db) => noteFenced(db, name));
    return end;
  }

  async cutStragglers() {
    for (let cut = 0; ; cut++) {
      const set = await this.#writes.telling("queued", cutOne, (found) => found !== null);
      if (set === null) {
        await this.#db.transaction((db) => dropParked(db, (id) => isOver(db, id)));
        return cut;
      }
      await this.#writes.endFirst(set);
    }
  }

  letGo(name: AttemptName, end: ParkedEnd) {
    return this.#db.transaction((db) => letGo(db, name, end));
  }

  nodes(signal?: AbortSignal) {
    return this.#db.statements(nodes, signal);
  }

  heldBack(signal?: AbortSignal) {
    return this.#db.statements((db) => heldBack(db, this.#patience), signal);
  }

  drainNode(name: string) {
    return this.#db.statements((db) => drainNode(db, name));
  }

  /** Also admits groups that a dead process left, removes old lines of the queue, and counts ended rollouts. */
  async expire() {
    const names = await this.#writes.telling("queued", expire, (dead) => dead.length > 0);
    await this.#writes.admit();
    await this.#db.transaction(leaveTheLine);
    await this.#db.statements(trimTurns);
    for (const id of await this.#db.statements(setsToCount)) await this.#db.transaction((db) => countOn(db, id));
    return names;
  }

  /** One set a transaction: each is locked by itself. */
  async expireResults(byDefault: number | null) {
    let expired = 0;
    for (const id of await this.#db.statements((db) => setsThatMayExpire(db, byDefault)))
      expired += await this.#db.transaction((db) => expireOf(db, id, byDefault, this.#atOnce));
    return expired;
  }

  removals(limit: number) {
    return this.#db.statements((db) => removals(db, limit));
  }

  removed(all: readonly Removal[]) {
    return this.#db.statements((db) => removed(db, all));
  }

  superseded(limit: number, seconds: number) {
    return this.#db.statements((db) => superseded(db, limit, seconds));
  }

  settled(all: readonly Superseded[]) {
    return this.#db.statements((db) => settled(db, all));
  }

  results(set: string, after: string | null, limit: number, gaps?: Gaps) {
    return this.#db.statements((db) => results(db, set, { after, limit, gaps }));
  }

  result(set: string, rollout: string) {
    return this.#db.statements((db) => resultOf(db, set, rollout));
  }

  wholeGroups(set: string, after: string | null, limit: number, gaps?: Gaps) {
    return this.#db.statements((db) => wholeGroups(db, set, { after, limit, gaps }));
  }

  tallyOf(set: string) {
    return this.#db.statements((db) => tallyOf(db, set));
  }

  keepTally(set: string, tally: string) {
    return this.#db.statements((db) => keepTally(db, set, tally));
  }

  /** A later step may admit groups. */
  keep(consumer: string, set: string, place: KeptPlace) {
    const isNews = (): boolean => place.step !== null;
    return this.#writes.telling("queued", (db) => keep(db, consumer, set, place), isNews);
  }

  forget(consumer: string, set: string) {
    return this.#db.statements((db) => forget(db, consumer, set));
  }

  control(signal?: AbortSignal) {
    return this.#db.statements(controlOf, signal);
  }

  async order(change: ControlChange) {
    const made = await this.#writes.telling("ordered", async (db) => {
      await lock(db, "control");
      // A claim notes the step that a group is begun at: one that is under way is over before there is another step.
      await lock(db, "claim");
      const before = await controlOf(db);
      const state = nextControl(before, change);
      await saveControl(db, state);
      await noteStep(db, stepInForce(state));
      const paused = pausedMs(before, state, Date.now());
      if (paused > 0) await db.run("UPDATE groups SET cut_at = cut_at + $1 WHERE whole_xid IS NULL AND cut_at IS NOT NULL", paused);
      return state;
    });
    await this.#writes.admit();
    return made;
  }

  report(lease: Lease, report: NodeReport) {
    return this.#db.statements((db) => saveReport(db, lease, NodeReport.parse(report)));
  }

  reports(signal?: AbortSignal) {
    return this.#db.statements(reports, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#notices, this.#results, this.answered].map((one) => one[Symbol.asyncDispose]()));
    await this.#db[Symbol.asyncDispose]();
  }
}
