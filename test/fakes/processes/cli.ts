/**
 * The real command line. `cli` runs it in this process, which costs nothing; `cliProcess` and `startCli` start a process, for
 * tests of what only a process has: signals, pipes, a folder of its own, an end by kill -9.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { Writable } from "node:stream";
import { main } from "../../../cli/commands/index.ts";
import { inTerminal } from "../../../cli/commands/terminal.ts";

export const root = join(import.meta.dirname, "../../..");

export type CliResult = { code: number | null; stdout: string; stderr: string };
export type CliOptions = { env?: Record<string, string | undefined>; cwd?: string };

/** Runs to its end, in this process. `env` is for what the verbs read themselves: TMPDIR, DOCKER_HOST and the like are the process's. */
export async function cli(args: string[], { env = {} }: { env?: Record<string, string | undefined> } = {}): Promise<CliResult> {
  const terminal = terminalSaying({ env: { ...ownEnvironment(), ...env } });
  await inTerminal(terminal, () => main(args));
  return { code: terminal.exitCode, stdout: terminal.stdout.text, stderr: terminal.stderr.text };
}

/** One that keeps what is said; it is stopped by `stop` only. */
export function terminalSaying({ env = {}, stop = new AbortController().signal, isTTY = false }: Partial<SaysWhere> = {}) {
  const stderr = Object.assign(new Said(), { isTTY });
  return { stdout: new Said(), stderr, env, exitCode: 0, stopSignal: () => stop, stopSignals: () => ({ drain: stop, cancel: stop }) };
}
type SaysWhere = { env: Record<string, string | undefined>; stop: AbortSignal; isTTY: boolean };

/** Runs to its end, in a process of its own. */
export async function cliProcess(args: string[], options: CliOptions = {}): Promise<CliResult> {
  await using running = startCli(args, options);
  return await running.ended;
}

/** Keeps what is written to it. */
export class Said extends Writable {
  readonly #chunks: Buffer[] = [];

  get text(): string {
    return Buffer.concat(this.#chunks).toString("utf8");
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }
}

/** Our own variables of this shell are no part of a test. */
function ownEnvironment(): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ALIDADE_") || name === "ALIDADE_CACHE"));
}

/** The one JSON object on the last line of standard output. */
export function jsonOf<T = Record<string, unknown>>({ stdout, stderr }: CliResult): T {
  const line = stdout.trim().split("\n").at(-1) ?? "";
  try {
    return JSON.parse(line) as T;
  } catch {
    throw new Error(`no JSON in "${stdout}"; standard error: ${stderr}`);
  }
}

export class RunningCli implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly ended: Promise<CliResult>;
  stdout = "";
  stderr = "";

  constructor(args: string[], options: CliOptions) {
    this.child = spawn(process.execPath, [join(root, "cli/cli.ts"), ...args], {
      cwd: options.cwd ?? root,
      env: { ...ownEnvironment(), ...options.env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
    });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
    });
    this.ended = once(this.child, "close").then(([code]) => ({ code: code as number | null, stdout: this.stdout, stderr: this.stderr }));
  }

  /** Until the condition holds of what it said; throws with that when it ends before. */
  async until(condition: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await condition())) {
      if (this.child.exitCode !== null || this.child.signalCode !== null)
        throw new Error(`it ended with ${this.child.exitCode ?? this.child.signalCode}: ${this.stdout}${this.stderr}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async kill(signal: NodeJS.Signals): Promise<CliResult> {
    this.child.kill(signal);
    return this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill("SIGKILL");
    await this.ended;
  }
}

export function startCli(args: string[], options: CliOptions = {}): RunningCli {
  return new RunningCli(args, options);
}
