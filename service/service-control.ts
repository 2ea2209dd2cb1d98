/**
 * Pause, policy and resume for the engines of a service. Fences and names of weights are in the ledger before they are in
 * force, so that a service that died between a pause and its resume starts behind the gate: half-loaded weights are
 * never sampled, and no sample is stamped with a name of earlier weights.
 */
import { AlidadeError, messageOf } from "../errors.ts";
import type { Ledger } from "../ledger/index.ts";
import type { Controlled } from "../proxy/control/controlled.ts";
import { newId } from "../schema/ids.ts";
import type { Policy } from "../schema/session-log.ts";

type Proxy = Pick<Controlled, "pool" | "fences">;
export type PauseOrder = {
  fence?: string | undefined;
  engines?: string[] | undefined;
  mode: "drain" | "hold" | "abort";
  timeout_seconds: number;
};
export type PolicyOrder = {
  policy: Policy;
  fence?: string | undefined;
  engines?: string[] | undefined;
  engineVersion?: string | undefined;
};

/** A trainer asks about its last one. */
const rememberedFences = 100;

export class ServiceControl {
  readonly #proxy: Proxy;
  readonly #ledger: Ledger;

  private constructor(proxy: Proxy, ledger: Ledger) {
    this.#proxy = proxy;
    this.#ledger = ledger;
  }

  /** Shuts the gates that were shut, and gives the weights the names that they had. Before anything is sampled. */
  static async restore(proxy: Proxy, ledger: Ledger, note: (text: string) => void, signal: AbortSignal): Promise<ServiceControl> {
    const control = new ServiceControl(proxy, ledger);
    const { fences, policies } = await ledger.control();
    for (const { fence, engines } of fences) {
      await proxy.fences.pause({ id: fence, ...(engines && { engines }), mode: "hold", timeoutSeconds: 0, signal });
      note(`fence ${fence} is shut, as it was when the service ended: it opens with POST /control/resume`);
    }
    for (const [name, { policy, engine_version }] of Object.entries(policies)) {
      const slot = proxy.pool.slots.find((one) => one.name === name);
      if (!slot) continue;
      const weights = { policy, engineVersion: engine_version ?? undefined };
      // Behind a gate the weights may be new and have no name yet; `resume` compares them.
      if (slot.gate !== null) slot.nameWeights({ ...weights, word: slot.word });
      else await control.#nameAgain(name, weights, note, signal);
    }
    return control;
  }

  async pause({ fence = newId("fence"), engines, mode, timeout_seconds }: PauseOrder, signal: AbortSignal) {
    const open = this.#proxy.fences.status().find((one) => one.fence === fence && one.acknowledged);
    // A trainer that was restarted asks again for the fence that it had.
    if (open)
      return { fence, engines: open.engines, mode: open.mode, drained: open.running === 0, running: open.running, held: open.running };
    const state = await this.#ledger.control();
    if (state.fences.some((one) => one.fence === fence))
      throw new AlidadeError("request_invalid", `fence ${fence} is being shut already`, { param: "fence", status: 409 });
    await this.#ledger.saveControl({ ...state, fences: [...state.fences, { fence, mode, engines: engines ?? null }] });
    try {
      return await this.#proxy.fences.pause({ id: fence, engines, mode, timeoutSeconds: timeout_seconds, signal });
    } catch (error) {
      await this.#forget(fence);
      throw error;
    }
  }

  async setPolicy({ policy, fence, engines, engineVersion }: PolicyOrder, signal: AbortSignal) {
    const named = await this.#proxy.fences.setPolicy({ fence, engines, policy, engineVersion, signal });
    const state = await this.#ledger.control();
    const entries = named.engines.map((name) => [name, { policy, engine_version: engineVersion ?? null }] as const);
    await this.#ledger.saveControl({ ...state, policies: { ...state.policies, ...Object.fromEntries(entries) } });
    return named;
  }

  /** A fence that was resumed before is no error: the answer to the first resume may have been lost. */
  async resume(fence: string, signal: AbortSignal) {
    const isShut = this.#proxy.fences.status().some((one) => one.fence === fence);
    const { resumed } = await this.#ledger.control();
    if (!isShut && resumed.includes(fence)) return { fence, engines: [], paused_seconds: 0, prefix_cache: {} };
    const answer = await this.#proxy.fences.resume(fence, signal);
    await this.#forget(fence);
    return answer;
  }

  status() {
    return this.#proxy.fences.status();
  }

  /** For `GET /health`. */
  engines() {
    return this.#proxy.pool.slots.map((slot) => slot.describe());
  }

  async #forget(fence: string): Promise<void> {
    const state = await this.#ledger.control();
    const resumed = [...state.resumed.filter((name) => name !== fence), fence].slice(-rememberedFences);
    await this.#ledger.saveControl({ ...state, fences: state.fences.filter((one) => one.fence !== fence), resumed });
  }

  /** Where the engine says that it serves others by now, its gate is shut until they have a name. */
  async #nameAgain(
    name: string,
    weights: { policy: Policy; engineVersion: string | undefined },
    note: (text: string) => void,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      await this.#proxy.fences.setPolicy({ engines: [name], ...weights, signal });
    } catch (error) {
      const { fence } = await this.pause({ engines: [name], mode: "hold", timeout_seconds: 0 }, signal);
      note(`${messageOf(error)}. Its gate is shut by fence ${fence}: PUT /control/policy, then POST /control/resume`);
    }
  }
}
