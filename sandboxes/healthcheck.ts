/** A sandbox is handed out when what its image or its task starts in it is ready. */
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError } from "../base/errors.ts";
import type { Healthcheck } from "../base/schema/environment/healthcheck.ts";
import type { Environment } from "../base/schema/task.ts";
import type { ExecResult, Sandbox } from "./sandbox.ts";

/** A command that ends with 0 once the sandbox is ready. Times in milliseconds. */
export type ReadyCheck = {
  argv: string[];
  cwd?: string;
  timeout: number;
  /** How long it may fail, from the start on. */
  patience: number;
  interval: number;
};

/** What an image starts by itself. */
export type ImageStart = {
  argv: readonly string[];
  /** A service: its end is a failure, with 0 too. */
  goesOn?: boolean;
  /** Whether the command that it was given runs: a start without an end gets that far. */
  reached(): boolean;
  /** Its exit code; null while it runs. */
  end(): Promise<number | null>;
  /** The end of what it said. */
  output(): string;
};

/** An image without a check says in no other way that a server, which runs no command of ours, is ready. */
const silentStartMs = 10_000;
/** It is looked at more often than it may fail, so that a sandbox waits no longer than it must. */
const lookMs = 1_000;
const outputBytes = 4_000;

/** What a task asks for; null where it leaves that to the image, or wants none. */
export function checkOfTask(asked: Environment["healthcheck"] | undefined): ReadyCheck | null {
  return asked == null || asked === "none" ? null : readyCheck(asked);
}

export function readyCheck(asked: Healthcheck): ReadyCheck {
  const { command, interval_seconds, timeout_seconds, retries, start_period_seconds } = asked;
  return {
    argv: typeof command === "string" ? ["sh", "-c", command] : command,
    interval: interval_seconds * 1000,
    timeout: timeout_seconds * 1000,
    patience: (start_period_seconds + retries * interval_seconds) * 1000,
  };
}

/** How errors name what is waited for. */
export type ReadyWords = { who: string; start: string; cure: string; field: string };

const ofSandbox: ReadyWords = {
  who: "The sandbox",
  start: "The image's ENTRYPOINT",
  cure: "A task with environment.healthcheck: none does not wait for it.",
  field: "environment.healthcheck",
};

/**
 * Waits until the check ends with 0, or without one until the image's start is through. Throws `sandbox_unhealthy` with the
 * command and the end of its output.
 */
export async function untilReady(
  sandbox: Pick<Sandbox, "exec">,
  check: ReadyCheck | null,
  start: ImageStart | null,
  signal: AbortSignal,
  words = ofSandbox,
): Promise<void> {
  if (check !== null) await untilHealthy(sandbox, check, start, signal, words);
  else if (start !== null) await untilThrough(start, signal, words);
}

async function untilThrough(start: ImageStart, signal: AbortSignal, words: ReadyWords): Promise<void> {
  const over = performance.now() + silentStartMs;
  while (!start.reached() && !(await hasEnded(start, words)) && performance.now() < over) await sleep(lookMs / 20, undefined, { signal });
}

async function untilHealthy(
  sandbox: Pick<Sandbox, "exec">,
  check: ReadyCheck,
  start: ImageStart | null,
  signal: AbortSignal,
  words: ReadyWords,
): Promise<void> {
  const { argv, cwd, timeout, patience, interval } = check;
  const over = performance.now() + patience;
  for (;;) {
    const options = { timeout_ms: timeout, max_output_bytes: outputBytes, keep_output: "end", signal } as const;
    const result = await sandbox.exec(argv, { ...options, ...(cwd !== undefined && { cwd }) });
    if (result.exit_code === 0) return;
    if (start !== null && (await hasEnded(start, words)) && start.goesOn) throw endedEarly(start, words);
    const pause = Math.min(interval, lookMs);
    if (performance.now() + pause > over) throw unhealthy(check, result, start, words);
    await sleep(pause, undefined, { signal });
  }
}

/** Throws where it failed: what it was to start does not run. */
export async function hasEnded(start: ImageStart, words: ReadyWords): Promise<boolean> {
  const code = await start.end();
  if (code === null || code === 0) return code === 0;
  throw failure(`${words.start} "${start.argv.join(" ")}" ended with ${code}${said(start.output())} ${words.cure}`, words);
}

export function endedEarly({ argv, output }: ImageStart, words: ReadyWords): AlidadeError {
  return failure(`${words.start} "${argv.join(" ")}" ended with 0, and is to go on${said(output())}`, words);
}

function unhealthy(
  { argv, timeout, patience }: ReadyCheck,
  { exit_code, timed_out, stdout, stderr }: ExecResult,
  start: ImageStart | null,
  words: ReadyWords,
) {
  const how = timed_out ? `took longer than ${seconds(timeout)} s` : `ended with ${exit_code}`;
  const beside = start === null ? "" : ` ${words.start} "${start.argv.join(" ")}" was started${said(start.output())}`;
  return failure(
    `${words.who} was not ready after ${seconds(patience)} s: the healthcheck "${argv.join(" ")}" ${how}${said(stdout + stderr)}${beside}`,
    words,
  );
}

export function failure(message: string, { field }: ReadyWords): AlidadeError {
  return new AlidadeError("sandbox_unhealthy", message, { param: field });
}

function seconds(milliseconds: number): number {
  return Number((milliseconds / 1000).toFixed(3));
}

function said(output: string): string {
  const end = output.trim().slice(-outputBytes);
  return end === "" ? ", and said nothing." : `. The end of what it said: ${end}`;
}
