/** How long after a node's death are its rollouts back in the line, and how long until their next attempts begin? */
import { setTimeout as sleep } from "node:timers/promises";
import { quantile } from "../../measure.ts";
import type { KillCluster } from "./kill-cluster.ts";

type Running = { id: string; attempt: number; node: string };

/** Seconds, of all rollouts that a killed node had. */
export type RerunTimes = { rollouts: number; median: number | null; most: number | null };

/** What is not back by then is said: a lease ends after 30 s, or 60 s where the database was away. */
const mostSeconds = 150;

export class RerunClock {
  readonly #queued: number[] = [];
  readonly #begun: number[] = [];
  readonly #cluster: KillCluster;
  readonly #say: (text: string) => void;

  constructor(cluster: KillCluster, say: (text: string) => void) {
    this.#cluster = cluster;
    this.#say = say;
  }

  /** `queued`: back in the line, or begun. `begun`: where the other nodes have no room, that is their work's time. */
  get times(): { queued: RerunTimes; begun: RerunTimes } {
    return { queued: timesOf(this.#queued), begun: timesOf(this.#begun) };
  }

  /** Attempts that nodes have at the moment; none while the database is down. */
  async running(): Promise<Running[]> {
    const rows = (await this.#cluster.ask("SELECT id, attempt, node FROM rollouts WHERE state = 'running'")) ?? [];
    return rows.map(({ id, attempt, node }) => ({ id: String(id), attempt: Number(attempt), node: String(node) }));
  }

  /** `before`: what ran at the moment of the kill. */
  async watch(node: string, before: readonly Running[]): Promise<void> {
    const own = before.filter((one) => one.node === node);
    const killed = performance.now();
    await Promise.all([
      this.#until(own, killed, this.#queued, ({ attempt }, now) => now.state !== "running" || now.attempt > attempt),
      this.#until(own, killed, this.#begun, ({ attempt }, now) => now.state === "done" || now.attempt > attempt),
    ]);
  }

  async #until(
    rollouts: readonly Running[],
    killed: number,
    times: number[],
    isThere: (before: Running, now: { state: string; attempt: number }) => boolean,
  ): Promise<void> {
    let left = rollouts;
    for (let passed = 0; left.length > 0 && passed < mostSeconds; ) {
      await sleep(500);
      const ids = left.map(({ id }) => id);
      const rows = (await this.#cluster.ask("SELECT id, attempt, state FROM rollouts WHERE id = ANY ($1)", [ids])) ?? [];
      const now = new Map(rows.map(({ id, attempt, state }) => [String(id), { state: String(state), attempt: Number(attempt) }]));
      passed = (performance.now() - killed) / 1000;
      const there = left.filter((one) => isThere(one, now.get(one.id) ?? { state: "running", attempt: 0 }));
      times.push(...there.map(() => Math.round(passed * 10) / 10));
      left = left.filter((one) => !there.includes(one));
    }
    times.push(...left.map(() => Number.POSITIVE_INFINITY));
    if (left.length > 0) this.#say(`${left.map(({ id }) => id).join(", ")} of a dead node: no sign in ${mostSeconds} s`);
  }
}

function timesOf(seconds: readonly number[]): RerunTimes {
  const sorted = seconds.toSorted((one, other) => one - other);
  return { rollouts: sorted.length, median: sorted.length === 0 ? null : quantile(sorted, 0.5), most: sorted.at(-1) ?? null };
}
