/**
 * What a verb sees of its process: where it speaks, its variables, its exit code and its stop signal. Verbs read it by
 * `terminal()`. It is the process's own, unless the caller of `inTerminal` gave another one: so a test runs a verb
 * without a process, and several side by side.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Writable } from "node:stream";

export type Terminal = {
  /** `fd`, where a child process can write into it itself. */
  stdout: Writable & { fd?: number; isTTY?: boolean; hasColors?: () => boolean };
  stderr: Writable & { fd?: number; isTTY?: boolean };
  env: Record<string, string | undefined>;
  exitCode: number;
  /** The form of what is said on stderr; `text` where left out. */
  logFormat?: "text" | "json";
  /** Aborted when the user stops the command. Only verbs that tidy up ask for it; without it a signal ends the process. */
  stopSignal(): AbortSignal;
};

const given = new AsyncLocalStorage<Terminal>();

export function terminal(): Terminal {
  return given.getStore() ?? processTerminal;
}

export function inTerminal<T>(other: Terminal, work: () => T): T {
  return given.run(other, work);
}

const processTerminal: Terminal = {
  get stdout() {
    return process.stdout;
  },
  get stderr() {
    return process.stderr;
  },
  get env() {
    return process.env;
  },
  get exitCode() {
    return Number(process.exitCode ?? 0);
  },
  set exitCode(code) {
    process.exitCode = code;
  },
  stopSignal,
};

/** One Ctrl-C can arrive twice: from the terminal and from the launcher that passes it on. */
const sameStopMs = 500;

/** Aborted by the first Ctrl-C or SIGTERM; a second one ends the process at once. */
function stopSignal(): AbortSignal {
  const controller = new AbortController();
  let stoppedAt: number | null = null;
  const stop = (): void => {
    if (stoppedAt !== null && Date.now() - stoppedAt < sameStopMs) return;
    if (stoppedAt !== null) process.exit(130);
    stoppedAt = Date.now();
    process.stderr.write("\nalidade: stopping; what is recorded stays (Ctrl-C again to end at once)\n");
    controller.abort(new Error("stopped by a signal"));
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  return controller.signal;
}
