/**
 * The node's places at engines whose calls at once are limited over all nodes: renewed with each beat by what its calls need.
 * Without a lease it has none.
 */
import { hostname } from "node:os";
import { isLoopback } from "../../base/host/is-loopback.ts";
import { hashOf } from "../../base/schema/ids.ts";
import type { EnginePool, EngineSlot } from "../../proxy/pool/index.ts";
import type { EngineUse, Lease, Ledger } from "../ledger/index.ts";

export class EngineGrants {
  readonly #pool: EnginePool;
  readonly #ledger: Pick<Ledger, "grantPlaces">;

  constructor(pool: EnginePool, ledger: Pick<Ledger, "grantPlaces">) {
    this.#pool = pool;
    this.#ledger = ledger;
    this.lost();
  }

  /** Places that are to be given back and are free already go back at once, not with the next beat. */
  async renew(lease: Lease): Promise<void> {
    if (await this.#askFor(lease)) await this.#askFor(lease);
  }

  /** Other nodes may have them from now on. */
  lost(): void {
    for (const slot of this.#limited) slot.grant(0);
  }

  get #limited(): EngineSlot[] {
    return this.#pool.slots.filter(({ callsAtOnce }) => callsAtOnce !== null);
  }

  /** Whether places are free now that the ledger takes for held. */
  async #askFor(lease: Lease): Promise<boolean> {
    const slots = this.#limited;
    if (slots.length === 0) return false;
    const granted = new Map((await this.#ledger.grantPlaces(lease, slots.map(useOf))).map((places) => [places.name, places]));
    const before = slots.map(({ places }) => places);
    for (const slot of slots) slot.grant(granted.get(slot.name)?.granted ?? 0);
    if (slots.some(({ places }, at) => places !== before[at])) this.#pool.changed();
    return slots.some((slot) => useOf(slot).held < (granted.get(slot.name)?.held ?? 0));
  }
}

function useOf(slot: EngineSlot): EngineUse {
  const { name, inFlight, waiting, callsAtOnce, places } = slot;
  const used = inFlight.size;
  return { name, server: serverOf(slot), limit: callsAtOnce ?? 0, used, waiting, held: Math.max(places ?? 0, used) };
}

/** Engines of one name and address are one server; on loopback each machine has its own. */
function serverOf({ name, engine: { baseUrl } }: EngineSlot): string {
  const isLocal = isLoopback(URL.parse(baseUrl)?.hostname ?? "");
  return hashOf([name, baseUrl, ...(isLocal ? [hostname()] : [])]);
}
