/**
 * The embedded ledger: one file of node:sqlite, one process. The folder's lock stands in for a lease between processes, so
 * what was running when the file is opened belongs to a process that died, and is queued again.
 */
import { AlidadeError, messageOf } from "../../../base/errors.ts";
import { Changes } from "../../../base/host/changes.ts";
import { Turns } from "../../../base/host/turns.ts";
import { newId } from "../../../base/schema/ids.ts";
import { Allocations, allocationPolicies } from "../allocation/index.ts";
import { type ControlChange, NodeReport, nextControl, pausedMs, stepInForce } from "../control-state.ts";
import type { EngineUse } from "../engine-places.ts";
import type { Gaps, Removal, Superseded } from "../expiry.ts";
import { specOf } from "../from-rows.ts";
import { type Layout, stepsToNow } from "../layout.ts";
import type { AttemptName, CancelOrder, ClaimedSets, KeptPlace, Lease, Ledger, NodeSpec, ParkedEnd } from "../ledger.ts";
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
  grant,
  join,
  leave,
  loseAll,
  nodes,
  release,
  reports,
  saveReport,
} from "./claims.ts";
import { cutOne } from "./conclude.ts";
import { Database } from "./database.ts";
import { endSome } from "./endings.ts";
import { expireResults, removals, removed } from "./expire-results.ts";
import { controlOf, fact } from "./facts.ts";
import { dropParked, freeParked, letGo } from "./parked.ts";
import { forget, keep, keepTally, resultOf, results, tallyOf, wholeGroups } from "./results.ts";
import { setOf } from "./set-row.ts";
import { cancel, drain, isOver, latestSets, putSet, setNamed, setsOf, stateOf } from "./sets.ts";
import { submit } from "./submit.ts";
import { settled, superseded } from "./superseded.ts";
import { factsTable, tables } from "./tables.ts";
import { settleSome } from "./whole-groups.ts";

/** `tables` adds what an older file lacks, so that a new table or index needs no other layout. */
const ownLayout: Layout = { now: 7 };

/** Rollouts that end in one transaction, which holds this process up for so long. */
const mostEndsAtOnce = 250;

/** `atOnce`: rollouts that end in one transaction. `layout`: of its tables. */
export type SqliteOptions = { now?: () => number; atOnce?: number | undefined; allocations?: Allocations; layout?: Layout };

export class SqliteLedger implements Ledger {
  readonly id: string;
  readonly isShared = false;
  readonly #db: Database;
  readonly #now: () => number;
  readonly #changes = new Changes();
  readonly #atOnce: number;
  readonly #turns = new Turns();
  readonly ending = new Changes();
  readonly ordered = new Changes();
  readonly answered = new Changes();

  /** The caller holds the lock of the file's folder. Throws `store_error` for a file that is no ledger of this layout. */
  static open(path: string, options: SqliteOptions = {}): SqliteLedger {
    const { now = Date.now, atOnce = mostEndsAtOnce, allocations = new Allocations(allocationPolicies), layout = ownLayout } = options;
    const db = new Database(path, allocations);
    try {
      return new SqliteLedger(db, path, { now, atOnce, layout });
    } catch (error) {
      db[Symbol.dispose]();
      throw error;
    }
  }

  private constructor(db: Database, path: string, { now, atOnce, layout }: { now: () => number; atOnce: number; layout: Layout }) {
    this.#db = db;
    this.#now = now;
    this.#atOnce = atOnce;
    this.id = db.transaction(() => {
      bringToNow(db, path, layout);
      db.exec(tables);
      // The process that used the file has died. When its node joins again, it names the attempts that are not blamed.
      for (const { node } of db.all("SELECT DISTINCT node FROM rollouts WHERE state = 'running'"))
        loseAll(db, String(node), now(), { by: "silent" });
      for (const { node } of db.all("SELECT DISTINCT node FROM parked WHERE node IS NOT NULL")) freeParked(db, String(node));
      return fact(db, "id", newId("run").slice(0, 11));
    });
  }

  get version(): number {
    return this.#changes.version;
  }

  /** One process has few waits, so those that claim hear of each change. */
  get claimable() {
    return this.#changes;
  }

  changed(seen: number, signal: AbortSignal): Promise<number> {
    return this.#changes.after(seen, signal);
  }

  async putSet(key: string, spec: SetSpec, namespace = "") {
    return this.#write(() => stateOf(this.#db, putSet(this.#db, { namespace, key }, spec, this.#now()), this.#now()));
  }

  async setNamed(key: string, namespace: string) {
    return this.#read(() => setNamed(this.#db, { namespace, key }));
  }

  async namespaceOf(set: string) {
    return this.#read(() => String(setOf(this.#db, set).namespace));
  }

  async set(id: string) {
    return this.#read(() => stateOf(this.#db, id, this.#now()));
  }

  async specOf(id: string) {
    return this.#read(() => specOf(setOf(this.#db, id)));
  }

  async sets(namespace?: string) {
    return this.#read(() => setsOf(this.#db, namespace).map((id) => stateOf(this.#db, id, this.#now())));
  }

  async latestSets(most: number, namespace?: string) {
    return this.#read(() => {
      const { total, ids } = latestSets(this.#db, most, namespace);
      return { total, sets: ids.map((id) => stateOf(this.#db, id, this.#now())) };
    });
  }

  async submit(set: string, parts: GroupPart[]) {
    const asked = await askedGroups(parts);
    return this.#writeAndEnd(set, () => submit(this.#db, set, asked, this.#now()));
  }

  async cancel(what: CancelOrder, reason: string) {
    return this.#writeAndEnd(what.set, () => cancel(this.#db, what, reason, this.#now()));
  }

  async endMore() {
    await this.#turns.take();
    const ended = this.#db.transaction(() => endSome(this.#db, null, this.#atOnce, this.#now()) || settleSome(this.#db, this.#atOnce));
    if (ended > 0) this.#changes.add();
    return ended;
  }

  async isOver(set: string) {
    return this.#read(() => isOver(this.#db, set));
  }

  async drain(set: string) {
    return this.#write(() => {
      drain(this.#db, set);
      if (settleSome(this.#db, this.#atOnce) === this.#atOnce) this.ending.add();
      return stateOf(this.#db, set, this.#now());
    });
  }

  async join(node: NodeSpec) {
    return this.#writeOfNode(() => join(this.#db, node, this.#now()));
  }

  async leave(lease: Lease) {
    await this.#writeOfNode(() => leave(this.#db, lease, this.#now()));
  }

  async beat(lease: Lease, running: readonly AttemptName[]) {
    await this.#turns.take();
    return this.#db.transaction(() => beat(this.#db, lease, running, this.#now()));
  }

  async grantPlaces(lease: Lease, uses: readonly EngineUse[]) {
    await this.#turns.take();
    return this.#db.transaction(() => grant(this.#db, lease, uses));
  }

  async claim(lease: Lease, free: number, from: ClaimedSets = "any") {
    await this.#turns.take();
    return this.#db.transaction(() => claim(this.#db, lease, free, from, this.#now()));
  }

  async release(name: AttemptName, broken: string | null) {
    return this.#write(() => release(this.#db, name, broken, this.#now()));
  }

  async setAside(rollout: string, why: string) {
    return this.#write(() => endAside(this.#db, rollout, why, this.#now()));
  }

  async finish(name: AttemptName, result: AttemptResult) {
    const end = await this.#write(() => finish(this.#db, name, result, this.#now()));
    const set = this.#db.get("SELECT set_id FROM rollouts WHERE id = ?", name.rollout_id)?.set_id;
    if (end === "accepted") this.#endFirst(String(set));
    return end;
  }

  async cutStragglers() {
    for (let cut = 0; ; cut++) {
      await this.#turns.take();
      if (!this.#db.transaction(() => cutOne(this.#db, this.#now()))) {
        this.#db.transaction(() => dropParked(this.#db, (set) => isOver(this.#db, set), this.#now()));
        return cut;
      }
      this.#changes.add();
      this.#endFirst(null);
    }
  }

  async letGo(name: AttemptName, end: ParkedEnd) {
    return this.#write(() => letGo(this.#db, name, end));
  }

  async nodes() {
    return this.#read(() => nodes(this.#db, this.#now()));
  }

  /** The file is this process's own. */
  async heldBack() {
    return [];
  }

  async drainNode(name: string) {
    await this.#write(() => drainNode(this.#db, name));
  }

  async expire() {
    return this.#writeOfNode(() => expire(this.#db, this.#now()));
  }

  async expireResults(byDefault: number | null) {
    await this.#turns.take();
    const groups = this.#db.transaction(() => expireResults(this.#db, byDefault, this.#atOnce, this.#now()));
    if (groups > 0) this.#changes.add();
    return groups;
  }

  async removals(limit: number) {
    return this.#read(() => removals(this.#db, limit));
  }

  async removed(all: readonly Removal[]) {
    await this.#turns.take();
    this.#db.transaction(() => removed(this.#db, all));
  }

  async superseded(limit: number, seconds: number) {
    return this.#read(() => superseded(this.#db, limit, this.#now() - seconds * 1000));
  }

  async settled(all: readonly Superseded[]) {
    this.#db.transaction(() => settled(this.#db, all));
  }

  async results(set: string, after: string | null, limit: number, gaps?: Gaps) {
    return this.#read(() => results(this.#db, set, after, limit, gaps));
  }

  async result(set: string, rollout: string) {
    return this.#read(() => resultOf(this.#db, set, rollout));
  }

  async wholeGroups(set: string, after: string | null, limit: number, gaps?: Gaps) {
    return this.#read(() => wholeGroups(this.#db, set, after, limit, gaps));
  }

  async tallyOf(set: string) {
    return this.#read(() => tallyOf(this.#db, set));
  }

  async keepTally(set: string, tally: string) {
    this.#db.transaction(() => keepTally(this.#db, set, tally));
  }

  async keep(consumer: string, set: string, place: KeptPlace) {
    await this.#write(() => keep(this.#db, consumer, set, place));
  }

  async forget(consumer: string, set: string) {
    return this.#write(() => forget(this.#db, consumer, set));
  }

  async control() {
    return this.#read(() => controlOf(this.#db));
  }

  async order(change: ControlChange) {
    await this.#turns.take();
    const state = this.#db.transaction(() => {
      const before = controlOf(this.#db);
      const next = nextControl(before, change);
      this.#db.run("UPDATE facts SET value = ? WHERE name = 'control'", JSON.stringify(next));
      noteStep(this.#db, stepInForce(next));
      this.#db.run("UPDATE groups SET cut_at = cut_at + ? WHERE whole IS NULL AND cut_at IS NOT NULL", pausedMs(before, next, this.#now()));
      return next;
    });
    // A later step may admit groups.
    this.#changes.add();
    this.ordered.add();
    this.answered.add();
    return state;
  }

  async report(lease: Lease, report: NodeReport) {
    await this.#turns.take();
    this.#db.transaction(() => saveReport(this.#db, lease, NodeReport.parse(report)));
    this.answered.add();
  }

  async reports() {
    return this.#read(() => reports(this.#db));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#db[Symbol.dispose]();
  }

  /** Several questions of one moment. */
  async #read<T>(work: () => T): Promise<T> {
    await this.#turns.take();
    return this.#db.transaction(work);
  }

  async #write<T>(work: () => T): Promise<T> {
    await this.#turns.take();
    const result = this.#db.transaction(work);
    this.#changes.add();
    return result;
  }

  /** With a first part of what it ordered to end. */
  async #writeAndEnd<T>(set: string, work: () => T): Promise<T> {
    const result = await this.#write(work);
    this.#endFirst(set);
    return result;
  }

  /** A first part of what was ordered to end in a set, or in all. The rest is for `endMore`; so is all of it where it fails now, for what ordered it stands. */
  #endFirst(set: string | null): void {
    try {
      const ended = this.#db.transaction(() => endSome(this.#db, set, this.#atOnce, this.#now()));
      if (ended > 0) this.#changes.add();
      if (ended === this.#atOnce) this.ending.add();
    } catch {
      this.ending.add();
    }
  }

  async #writeOfNode<T>(work: () => T): Promise<T> {
    const result = await this.#write(work);
    this.answered.add();
    return result;
  }
}

/** Turns the tables of the layout before into today's. Throws `store_error` for any other layout, and changes nothing then. */
function bringToNow(db: Database, path: string, layout: Layout): void {
  db.exec(factsTable);
  try {
    for (const step of stepsToNow(fact(db, "layout", String(layout.now)), layout, "folder")) db.exec(step);
  } catch (error) {
    throw new AlidadeError("store_error", `${path}: ${messageOf(error)}`, { cause: error });
  }
  db.run("UPDATE facts SET value = ? WHERE name = 'layout'", String(layout.now));
}
