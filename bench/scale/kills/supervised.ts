/** A process that is started again when it has died, as a supervisor does it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

export type Command = { args: string[]; cwd: string; env?: Record<string, string> };

/** A supervisor's own pause: what cannot start now is not started in a busy loop. */
const pauseMs = 1_000;

export class Supervised implements AsyncDisposable {
  readonly name: string;
  /** Ends that no signal of ours caused: the exit code or the signal. */
  readonly fell: string[] = [];
  starts = 0;
  readonly #command: Command;
  readonly #log: WriteStream;
  readonly #over = new AbortController();
  readonly #running: Promise<void>;
  #child: ChildProcess | null = null;
  /** How long it stays dead after the next end; null: no kill is under way. */
  #downMs: number | null = null;

  /** `args[0]` is the program. Its output goes to `log`. One that ends with 0 is done and is not started again. */
  constructor(name: string, command: Command, log: string) {
    this.name = name;
    this.#command = command;
    this.#log = createWriteStream(log, { flags: "a" });
    this.#running = this.#run();
  }

  get isUp(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Until it ended with 0. */
  get done(): Promise<void> {
    return this.#running;
  }

  /** kill -9; it starts again after so long. Returns false where it was dead. */
  kill(downMs: number): boolean {
    if (!this.isUp) return false;
    this.#downMs = downMs;
    return this.#child?.kill("SIGKILL") ?? false;
  }

  /** Asks it to end, and is not started again. */
  async stop(): Promise<void> {
    this.#over.abort();
    this.#child?.kill("SIGTERM");
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    this.#child?.kill("SIGKILL");
    await this.#running;
    this.#log.end();
  }

  async #run(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      const end = await this.#once();
      this.#child = null;
      if (end === "0") return;
      if (this.#downMs === null && !signal.aborted) this.fell.push(end);
      await sleep(this.#downMs ?? pauseMs, undefined, { signal }).catch(() => undefined);
      this.#downMs = null;
    }
  }

  /** Its exit code or signal. The pipe to its standard input ends with us, for programs that end with their parent. */
  async #once(): Promise<string> {
    const [program = "", ...args] = this.#command.args;
    this.starts += 1;
    this.#log.write(`--- ${new Date().toISOString()} start ${this.starts}\n`);
    const { cwd, env } = this.#command;
    const child = spawn(program, args, { cwd, env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"] });
    this.#child = child;
    child.stdout?.pipe(this.#log, { end: false });
    child.stderr?.pipe(this.#log, { end: false });
    const [code, signal] = await once(child, "close");
    return String(signal ?? code);
  }
}
