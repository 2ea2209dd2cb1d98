/** A contestant in a process of its own: its CPU is its own, and the benchmark asks it things over IPC. */
import { type ChildProcess, fork } from "node:child_process";

type Question = { id: number; method: string; argument: unknown };
type Reply = { id: number; value?: unknown; error?: string };

export class Child implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
  #asked = 0;

  /** Starts `file` (an absolute path). Its own output goes to our stderr, so that `--json` stays clean. */
  constructor(file: string, execArgv: string[] = []) {
    this.#process = fork(file, [], { execArgv, stdio: ["ignore", 2, 2, "ipc"] });
    this.#process.on("message", (reply: Reply) => {
      const asked = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if (reply.error === undefined) asked?.resolve(reply.value);
      else asked?.reject(new Error(`${file}: ${reply.error}`));
    });
    this.#process.once("exit", (code, signal) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`${file} ended with ${signal ?? code}`));
    });
  }

  get pid(): number {
    return this.#process.pid!;
  }

  ask<T>(method: string, argument: unknown = null): Promise<T> {
    const id = this.#asked++;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.#process.send({ id, method, argument } satisfies Question);
    });
  }

  /** Closes the channel, on which a child ends by itself; one that does not is killed. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), 5_000);
    this.#process.disconnect();
    await ended;
    clearTimeout(timer);
  }
}

/** The child's side: answers what it is asked, and ends when the benchmark is gone. */
export function answerParent(methods: Record<string, (argument: never) => unknown>, close?: () => Promise<void>): void {
  process.on("message", ({ id, method, argument }: Question) => {
    const answer = async () => methods[method]!(argument as never);
    answer().then(
      (value) => process.send?.({ id, value } satisfies Reply),
      (error: Error) => process.send?.({ id, error: error.stack ?? String(error) } satisfies Reply),
    );
  });
  process.once("disconnect", () => void Promise.resolve(close?.()).finally(() => process.exit()));
}
