/** The real command line as a child process, as a person or a script would call it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

export const root = join(import.meta.dirname, "../../..");

export type CliResult = { code: number | null; stdout: string; stderr: string };
export type CliOptions = { env?: Record<string, string | undefined>; cwd?: string };

/** Runs to its end. */
export async function cli(args: string[], options: CliOptions = {}): Promise<CliResult> {
  await using running = startCli(args, options);
  return await running.ended;
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
    // Our own variables of this shell are no part of a test.
    const clean = Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !name.startsWith("ALIDADE_") || name === "ALIDADE_CACHE"),
    );
    this.child = spawn(process.execPath, [join(root, "cli.ts"), ...args], {
      cwd: options.cwd ?? root,
      env: { ...clean, ...options.env },
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
