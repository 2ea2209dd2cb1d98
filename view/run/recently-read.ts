/** Keeps what was read last: pages ask for many windows of tokens of one session in a row. */
export class RecentlyRead<T> {
  readonly #most: number;
  readonly #kept = new Map<string, Promise<T>>();

  constructor(most: number) {
    this.#most = most;
  }

  /** Reads it where it is not kept. A failure is not kept. */
  async get(name: string, read: () => Promise<T>): Promise<T> {
    const found = this.#kept.get(name) ?? read();
    this.#kept.delete(name);
    this.#kept.set(name, found);
    if (this.#kept.size > this.#most) this.#kept.delete(this.#kept.keys().next().value ?? "");
    try {
      return await found;
    } catch (error) {
      this.#kept.delete(name);
      throw error;
    }
  }

  clear(): void {
    this.#kept.clear();
  }
}
