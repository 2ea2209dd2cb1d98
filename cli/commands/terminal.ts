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
  /** The same in two steps, for verbs whose work in progress is worth its end. */
  stopSignals(): StopSignals;
};

/** `drain`: nothing more begins. `cancel`: what runs is cancelled; `drain` has fired by then. */
export type StopSignals = { drain: AbortSignal; cancel: AbortSignal };

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
  stopSignals,
};

/** One Ctrl-C can arrive twice: from the terminal and from the launcher that passes it on. */
const sameStopMs = 500;

/** Aborted by the first Ctrl-C or SIGTERM; a second one ends the process at once. */
function stopSignal(): AbortSignal {
  const controller = new AbortController();
  onStops([() => stopBy(controller)], 0);
  return controller.signal;
}

/** A first Ctrl-C drains, a second one cancels, as SIGTERM does; one more ends the process at once. */
function stopSignals(): StopSignals {
  const [drain, cancel] = [new AbortController(), new AbortController()];
  const drains = (): void => {
    process.stderr.write("\nalidade: nothing more begins; what runs goes on to its end (Ctrl-C again cancels it)\n");
    drain.abort(new Error("drained by a signal"));
  };
  const cancels = (): void => {
    drain.abort(new Error("stopped by a signal"));
    stopBy(cancel);
  };
  onStops([drains, cancels], 1);
  return { drain: drain.signal, cancel: cancel.signal };
}

function stopBy(controller: AbortController): void {
  process.stderr.write("\nalidade: stopping; what is recorded stays (Ctrl-C again to end at once)\n");
  controller.abort(new Error("stopped by a signal"));
}

/** Each Ctrl-C takes the next step, SIGTERM the step `onTerminate` or the one behind it; behind the last the process ends. */
function onStops(steps: (() => void)[], onTerminate: number): void {
  let next = 0;
  let stoppedAt = Number.NEGATIVE_INFINITY;
  const stop = (least: number): void => {
    if (Date.now() - stoppedAt < sameStopMs) return;
    stoppedAt = Date.now();
    next = Math.max(next, least);
    const step = steps[next++];
    if (step === undefined) process.exit(130);
    step();
  };
  process.on("SIGINT", () => stop(0));
  process.on("SIGTERM", () => stop(onTerminate));
}
