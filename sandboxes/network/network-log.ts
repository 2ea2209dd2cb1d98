/** What a rollout's sandboxes asked of the network: counts by destination and by refusal, bounded, without any content. */
import type { NetworkPhase, NetworkRefusal, NetworkUse } from "../../base/schema/network.ts";
import type { Destination } from "./allowed-names.ts";

/** Entries of each list. A task names at most 200 hosts; an agent can name any number. */
const maxEntries = 200;

export class NetworkLog {
  readonly #destinations = new Map<string, NetworkUse["destinations"][number]>();
  readonly #refusals = new Map<string, NetworkUse["refusals"][number]>();
  readonly #whole: NetworkLog | null;
  #leftOut = 0;
  #bytes = 0;

  /** `whole`: a log that gets all of this one too. The bytes of a part count for the part alone. */
  constructor(whole: NetworkLog | null = null) {
    this.#whole = whole;
  }

  /** Bytes of all connections, both ways. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Says where a connection went; the returned function adds the bytes that went over it. */
  opened(phase: NetworkPhase, { host, port }: Destination): (sent: number, received: number) => void {
    const entry = this.#entry(this.#destinations, `${phase} ${host}:${port}`, () => ({
      ...{ phase, host, port },
      ...{ connections: 0, sent_bytes: 0, received_bytes: 0 },
    }));
    if (entry !== null) entry.connections++;
    const ofWhole = this.#whole?.opened(phase, { host, port });
    return (sent, received) => {
      this.#bytes += sent + received;
      ofWhole?.(sent, received);
      if (entry === null) return;
      entry.sent_bytes += sent;
      entry.received_bytes += received;
    };
  }

  refused(phase: NetworkPhase, asked: { host: string | null; port: number | null }, reason: NetworkRefusal): void {
    const { host, port } = asked;
    const entry = this.#entry(this.#refusals, `${phase} ${host}:${port} ${reason}`, () => ({ phase, host, port, reason, times: 0 }));
    if (entry !== null) entry.times++;
    this.#whole?.refused(phase, asked, reason);
  }

  use(): NetworkUse {
    const copies = <Entry>(entries: Map<string, Entry>) => [...entries.values()].map((entry) => ({ ...entry }));
    return { destinations: copies(this.#destinations), refusals: copies(this.#refusals), left_out: this.#leftOut };
  }

  #entry<Entry>(entries: Map<string, Entry>, key: string, make: () => Entry): Entry | null {
    const found = entries.get(key);
    if (found !== undefined) return found;
    if (entries.size >= maxEntries) {
      this.#leftOut++;
      return null;
    }
    const made = make();
    entries.set(key, made);
    return made;
  }
}
