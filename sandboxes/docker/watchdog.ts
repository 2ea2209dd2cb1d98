/** Holds a container to its disk where nothing else does: its layer is measured again and again, and one that is too large ends it. */
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";

/** The engine walks the layer for each look. */
const lookMs = 2_000;

export class Watchdog {
  readonly #container: Docker.Container;
  readonly #disk_mb: number;
  readonly #stopped = new AbortController();
  /** The container was too large and was killed. */
  barked = false;

  constructor(container: Docker.Container, disk_mb: number) {
    this.#container = container;
    this.#disk_mb = disk_mb;
    void this.#watch();
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #watch(): Promise<void> {
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await sleep(lookMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (!signal.aborted && (await this.look())) return;
    }
  }

  /** Measures now; true: the container was too large and is ended. */
  async look(): Promise<boolean> {
    if (this.barked || !(await this.#isTooLarge())) return this.barked;
    this.barked = true;
    await this.#container.kill().catch(() => undefined); // gone already
    return true;
  }

  /** A look that fails is no look: a container that is gone says so at its next command. */
  async #isTooLarge(): Promise<boolean> {
    const look = this.#container.inspect({ size: true } as object) as Promise<{ SizeRw?: number }>;
    const { SizeRw = 0 } = await look.catch(() => ({ SizeRw: 0 }));
    return SizeRw > this.#disk_mb * 1024 ** 2;
  }
}
