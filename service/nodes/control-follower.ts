/**
 * Makes at this node's proxy what the ledger says of fences and names of weights. An order is carried out once and answered
 * by its number. Fences and names are a state and no events, so a node that starts late, or comes back, stands behind the
 * same gates under the same names as the others before it samples anything.
 */

import { asAlidadeError, messageOf } from "../../base/errors.ts";
import type { Controlled } from "../../proxy/control/index.ts";
import type { EngineSlot } from "../../proxy/pool/index.ts";
import { preferPolicy } from "../../proxy/pool/index.ts";
import type { PolicyName } from "../ledger/index.ts";
import { type ControlState, type FenceOrder, type Lease, type Ledger, NodeAnswer, type NodeQuestion, ordersOf } from "../ledger/index.ts";

/** How long a drain may take is the service's to say: it takes the fence back. Below the longest timer, 24 days. */
const untilTakenBack = 20 * 86_400;

/** The hold of an engine whose weights are not those of their name. */
const misnamed = "name-its-weights";

type ShutGate = { since: number; shut: Promise<NodeAnswer> };

export class ControlFollower {
  readonly #proxy: Pick<Controlled, "pool" | "fences">;
  readonly #ledger: Ledger;
  readonly #note: (text: string) => void;
  readonly #signal: AbortSignal;
  /** Fences that this node has shut. */
  readonly #gates = new Map<string, ShutGate>();
  readonly #atWork = new Map<number, Promise<void>>();
  readonly #answers = new Map<number, NodeAnswer>();
  #lease: Lease | null = null;
  #state: ControlState | null = null;
  #reporting = Promise.resolve();
  /** What the ledger has heard last. */
  #said = "";

  constructor(proxy: Pick<Controlled, "pool" | "fences">, ledger: Ledger, note: (text: string) => void, signal: AbortSignal) {
    this.#proxy = proxy;
    this.#ledger = ledger;
    this.#note = note;
    this.#signal = signal;
  }

  /** Resolves when gates and names are those of the ledger. An order that comes later waits for this node, as it has joined. */
  async joined(lease: Lease): Promise<void> {
    this.#lease = lease;
    await this.look();
    await Promise.all((this.#state?.policies ?? []).map(({ order }) => this.#atWork.get(order)));
  }

  /** Follows each order as it is given, until the signal fires. */
  async follow(): Promise<void> {
    while (!this.#signal.aborted) {
      const seen = this.#ledger.ordered.version;
      // A ledger that is away is looked at again with the next beat, which says that it is away.
      if (this.#lease !== null) await this.look().catch(() => undefined);
      await this.#ledger.ordered.after(seen, this.#signal).catch(() => undefined);
    }
  }

  async look(): Promise<void> {
    this.#carryOut(await this.#ledger.control());
    await this.#report();
  }

  #carryOut(state: ControlState): void {
    if (state.order < (this.#state?.order ?? 0)) return;
    this.#state = state;
    for (const [fence, { since }] of [...this.#gates])
      if (!state.fences.some((one) => one.fence === fence && one.since === since)) this.#open(fence);
    for (const order of state.fences) this.#once(order, () => this.#shut(order));
    for (const name of state.policies) this.#once(name, () => this.#name(name, state.policies));
    for (const question of state.questions) this.#once(question, () => this.#reply(question));
    const asked = new Set(ordersOf(state));
    for (const order of this.#answers.keys()) if (!asked.has(order)) this.#answers.delete(order);
  }

  /** What is done or at work is not done again; what was refused is tried again with each look. */
  #once({ order }: { order: number }, work: () => Promise<NodeAnswer>): void {
    const known = this.#answers.get(order);
    if (this.#atWork.has(order) || (known && known.error === null)) return;
    const done = work()
      .catch(refusal)
      .then(async (answer) => {
        this.#atWork.delete(order);
        // A node that ends has no say any more: what it gave up has not failed.
        if (this.#signal.aborted || this.#state === null || !ordersOf(this.#state).includes(order)) return;
        this.#answers.set(order, answer);
        await this.#report();
      })
      .catch((error: unknown) => this.#note(`an order of the ledger was not answered yet: ${messageOf(error)}`));
    this.#atWork.set(order, done);
  }

  /** One after another: an older report must not come behind a newer one. */
  #report(): Promise<void> {
    this.#reporting = this.#reporting.catch(() => undefined).then(() => this.#say());
    return this.#reporting;
  }

  async #say(): Promise<void> {
    if (this.#lease === null || this.#state === null) return;
    const report = { order: this.#state.order, answers: Object.fromEntries(this.#answers) };
    // Each report wakes those that wait for one, and a node looks every few seconds.
    const said = JSON.stringify([this.#lease.epoch, report]);
    if (said === this.#said) return;
    await this.#ledger.report(this.#lease, report);
    this.#said = said;
  }

  async #shut({ fence, since, mode, otherwise, engines }: FenceOrder): Promise<NodeAnswer> {
    const known = this.#gates.get(fence);
    if (known) return known.shut;
    const own = this.#own(engines);
    if (own?.length === 0) return NodeAnswer.parse({});
    const shut = this.#proxy.fences
      .pause({ id: fence, engines: own, mode, otherwise, timeoutSeconds: untilTakenBack, signal: this.#signal })
      .then(({ engines, running, held, interrupted }) => NodeAnswer.parse({ engines, running, held, interrupted }));
    this.#gates.set(fence, { since, shut });
    shut.catch(() => this.#gates.delete(fence));
    return shut;
  }

  #open(fence: string): void {
    this.#gates.delete(fence);
    this.#proxy.fences.open(fence);
  }

  /** Each engine by itself: one that serves other weights takes nothing from those that serve the right ones. */
  async #name(name: PolicyName, all: readonly PolicyName[]): Promise<NodeAnswer> {
    const { pool } = this.#proxy;
    const policySlots = preferPolicy(pool.slots);
    const slots = pool.slots.filter((slot) => newestName(all, slot.name, policySlots.includes(slot)) === name);
    const answer = NodeAnswer.parse({});
    for (const slot of slots) await this.#nameOne(slot, name, answer);
    return answer;
  }

  async #nameOne(slot: EngineSlot, { policy, engine_version }: PolicyName, answer: NodeAnswer): Promise<void> {
    const weights = { policy, engineVersion: engine_version ?? undefined };
    try {
      const named = await this.#proxy.fences.setPolicy({ engines: [slot.name], ...weights, signal: this.#signal });
      this.#hasItsName(slot);
      answer.engines.push(slot.name);
      answer.checked.push(...named.checked);
      Object.assign(answer.prefix_cache, named.prefix_cache);
    } catch (error) {
      answer.error ??= refusal(error).error;
      if (slot.holds.some(({ fence }) => fence === misnamed)) return;
      slot.shut({ fence: misnamed, since: Date.now(), why: "a name of their weights" });
      slot.nameWeights({ ...weights, word: slot.word });
      this.#note(`${messageOf(error)}. Its gate is shut until it serves these weights, or they have their name: PUT /control/policy`);
    }
  }

  #hasItsName(slot: EngineSlot): void {
    slot.open(misnamed);
    this.#proxy.pool.changed();
  }

  async #reply(question: NodeQuestion): Promise<NodeAnswer> {
    const signal = this.#signal;
    if (question.asks === "may this fence be opened?") {
      await this.#gates.get(question.fence)?.shut;
      if (!this.#gates.has(question.fence)) return NodeAnswer.parse({});
      const prefix_cache = await this.#proxy.fences.ready(question.fence, signal);
      for (const name of Object.keys(prefix_cache)) this.#hasItsName(this.#proxy.pool.named(name));
      return NodeAnswer.parse({ engines: Object.keys(prefix_cache), prefix_cache });
    }
    const { fence, policy, engine_version } = question;
    const engines = this.#own(question.engines);
    if (engines?.length === 0 || (fence !== null && !this.#gates.has(fence))) return NodeAnswer.parse({});
    const order = { fence: fence ?? undefined, engines, policy, engineVersion: engine_version ?? undefined, signal };
    return NodeAnswer.parse(await this.#proxy.fences.check(order));
  }

  /** Those of the names that this node has; undefined: the policy's. Nodes may have engines that others have not. */
  #own(engines: readonly string[] | null): string[] | undefined {
    return engines?.filter((name) => this.#proxy.pool.slots.some((slot) => slot.name === name));
  }
}

function refusal(error: unknown): NodeAnswer {
  const { code, status, message } = asAlidadeError(error, "internal");
  return NodeAnswer.parse({ error: { code, status, message } });
}

/** The last name that was given to an engine's weights. `isPolicy`: it is one of the engines that serve the policy. */
export function newestName(names: readonly PolicyName[], engine: string, isPolicy: boolean): PolicyName | null {
  const own = names.filter(({ engines }) => (engines === null ? isPolicy : engines.includes(engine)));
  return own.toSorted((one, other) => other.order - one.order)[0] ?? null;
}
