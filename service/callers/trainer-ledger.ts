/**
 * The ledger as a token sees it. Routes of trainers have no other one: a set of another namespace is not there, and is refused in the
 * very words of a set that never was.
 */
import type { CancelOrder, Gaps, GroupPart, KeptPlace, Ledger, SetSpec } from "../ledger/index.ts";
import { refusals } from "../ledger/index.ts";

/** A set's namespace never changes, so it is asked for once; a trainer works on a few sets at a time. */
const mostKnown = 1_000;

export class TrainerLedger {
  readonly #ledger: Ledger;
  readonly #namespace: string | null;
  /** Sets that were found to be the namespace's. */
  readonly #own = new Set<string>();

  /** `namespace`: null sees all sets, and makes those of the operator. */
  constructor(ledger: Ledger, namespace: string | null) {
    this.#ledger = ledger;
    this.#namespace = namespace;
  }

  /** That of the sets which it makes. */
  get namespace(): string {
    return this.#namespace ?? "";
  }

  /** Resolves where the token sees the set. Throws `not_found`. */
  async assertSees(set: string): Promise<void> {
    if (this.#namespace === null || this.#own.has(set)) return;
    if ((await this.#ledger.namespaceOf(set)) !== this.#namespace) throw refusals.noSet(set);
    const [oldest] = this.#own;
    if (this.#own.size >= mostKnown && oldest !== undefined) this.#own.delete(oldest);
    this.#own.add(set);
  }

  get version(): number {
    return this.#ledger.version;
  }

  async changed(seen: number, signal: AbortSignal, set: string): Promise<number> {
    await this.assertSees(set);
    return this.#ledger.changed(seen, signal, set);
  }

  putSet(key: string, spec: SetSpec) {
    return this.#ledger.putSet(key, spec, this.namespace);
  }

  /** The id of its own set; null: there is none of this key. */
  setNamed(key: string) {
    return this.#ledger.setNamed(key, this.namespace);
  }

  /** The sets that it sees. */
  sets() {
    return this.#ledger.sets(this.#namespace ?? undefined);
  }

  /** At most `most` of the sets that it sees. `Ledger` says which. */
  latestSets(most: number) {
    return this.#ledger.latestSets(most, this.#namespace ?? undefined);
  }

  /** The sets of its own namespace. */
  ownSets() {
    return this.#ledger.sets(this.namespace);
  }

  async set(id: string) {
    await this.assertSees(id);
    return this.#ledger.set(id);
  }

  async specOf(id: string) {
    await this.assertSees(id);
    return this.#ledger.specOf(id);
  }

  async submit(set: string, parts: GroupPart[]) {
    await this.assertSees(set);
    return this.#ledger.submit(set, parts);
  }

  async cancel(what: CancelOrder, reason: string) {
    await this.assertSees(what.set);
    return this.#ledger.cancel(what, reason);
  }

  async isOver(set: string) {
    await this.assertSees(set);
    return this.#ledger.isOver(set);
  }

  async drain(set: string) {
    await this.assertSees(set);
    return this.#ledger.drain(set);
  }

  async results(set: string, after: string | null, limit: number, gaps?: Gaps) {
    await this.assertSees(set);
    return this.#ledger.results(set, after, limit, gaps);
  }

  async result(set: string, rollout: string) {
    await this.assertSees(set);
    return this.#ledger.result(set, rollout);
  }

  async wholeGroups(set: string, after: string | null, limit: number, gaps?: Gaps) {
    await this.assertSees(set);
    return this.#ledger.wholeGroups(set, after, limit, gaps);
  }

  async keep(consumer: string, set: string, place: KeptPlace) {
    await this.assertSees(set);
    return this.#ledger.keep(consumer, set, place);
  }

  async forget(consumer: string, set: string) {
    await this.assertSees(set);
    return this.#ledger.forget(consumer, set);
  }
}
