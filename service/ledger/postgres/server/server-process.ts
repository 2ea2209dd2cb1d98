/** Processes of Postgres: the server, which ends when this process ends in any way, and programs that run to their end. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { AlidadeError } from "../../../../base/errors.ts";
import { BoundedOutput } from "../../../../base/host/bounded-output.ts";
import type { PostgresPrograms, ServerUser } from "./programs.ts";

/** A server that was killed leaves processes for a moment, and one that is told to end writes its memory to the disk first. */
const freeMs = 60_000;
const lookAgainMs = 250;
/** Kept of what it says: the end. */
const mostBytes = 8_192;

/** Another server is at work on these data, or its memory is still there. */
const busy = /lock file "postmaster\.pid" already exists|shared memory block .* is still in use/;

/**
 * The server is told to end when its standard input does: so it also ends when this process is killed. SIGINT is Postgres's own
 * way to end at once and in order.
 */
const endsWithInput = `
exec 3<&0
"$@" 3<&- </dev/null &
server=$!
{ cat <&3 >/dev/null 2>&1; kill -INT "$server"; } 2>/dev/null &
told=$!
exec 3<&-
wait "$server"
code=$?
kill "$told" 2>/dev/null
exit "$code"
`;

/** What it inherits: nothing of this process's secrets. */
const environment = { PATH: "/usr/bin:/bin:/usr/local/bin", LC_ALL: "C", TZ: "UTC" };

const idsOf = (user: ServerUser) => (user === null ? {} : { uid: user.uid, gid: user.gid });

/** Runs to its end. Throws `store_error` with what it said last. */
export async function runProgram(
  program: string,
  options: string[],
  user: ServerUser,
  { input = "", signal }: { input?: string; signal: AbortSignal },
): Promise<void> {
  const child = spawn(program, options, { ...idsOf(user), env: environment, cwd: "/", signal, stdio: ["pipe", "ignore", "pipe"] });
  const said = new BoundedOutput(mostBytes, "end").follow(child.stderr);
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const [code, end] = await once(child, "close").catch((error: Error) => {
    signal.throwIfAborted();
    throw failed(program, error.message);
  });
  if (code !== 0) throw failed(program, reasonIn(said.toString()) ?? `it ended with ${code ?? end}`);
}

/** A folder that initdb made, and the programs of its version. */
type ServerData = { data: string; programs: PostgresPrograms };

/** `signal`: ends a start, which may take minutes after a crash. */
export type ServerOptions = { settings: Record<string, string>; log: (line: string) => void; signal: AbortSignal };

export class ServerProcess implements AsyncDisposable {
  readonly #child: ChildProcess;
  /** How it ended, in words. */
  readonly ended: Promise<string>;

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.ended = new Promise((resolve) => {
      child.once("exit", (code, signal) => resolve(signal ?? `exit code ${code}`));
      child.once("error", (error) => resolve(error.message));
    });
  }

  /** Until it takes connections. What it says after that goes to `log`, a line a call. Throws `store_error` with the reason. */
  static async start({ data, programs }: ServerData, { settings, log, signal }: ServerOptions): Promise<ServerProcess> {
    signal.throwIfAborted();
    const options = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const child = spawn("/bin/sh", ["-c", endsWithInput, "sh", programs.postgres, "-D", data, ...options], {
      ...idsOf(programs.user),
      env: environment,
      cwd: "/",
      // Ctrl-C is for this process, which tells the server.
      detached: true,
      stdio: ["pipe", "ignore", "pipe"],
    });
    child.stdin.on("error", () => undefined);
    const server = new ServerProcess(child);
    const said = new BoundedOutput(mostBytes, "end");
    const { promise: ready, resolve } = Promise.withResolvers<null>();
    let isReady = false;
    createInterface({ input: child.stderr }).on("line", (line) => {
      if (isReady) {
        log(line);
        return;
      }
      said.push(Buffer.from(`${line}\n`));
      isReady = line.endsWith("database system is ready to accept connections");
      if (isReady) resolve(null);
    });
    const stop = (): void => void child.stdin.destroy();
    signal.addEventListener("abort", stop, { once: true });
    const end = await Promise.race([ready, once(child, "close").then(() => server.ended)]);
    signal.removeEventListener("abort", stop);
    if (end === null) return server;
    signal.throwIfAborted();
    throw failed(programs.postgres, reasonIn(said.toString()) ?? `it ended with ${end}`);
  }

  /** Connections are closed and what is committed is on the disk. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin?.end();
    await this.ended;
    this.#child.stdin?.destroy();
  }
}

/** Tries again while another server is at work on the data, for a minute. */
export async function untilFree<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const until = Date.now() + freeMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!busy.test(String(error)) || Date.now() > until) throw error;
      await sleep(lookAgainMs, undefined, { signal });
    }
  }
}

/** What a program of Postgres says at its end, in one line and without its log of what went well; null where it said nothing. */
function reasonIn(said: string): string | null {
  const lines = said.split("\n").filter((line) => line.trim() !== "" && !(line.includes(" LOG: ") && !line.includes("could not")));
  return lines.length === 0 ? null : lines.map((line) => line.replace(/^\d.*? \[\d+\] /, "").replace(/\s+/g, " ")).join(" ");
}

function failed(program: string, reason: string): AlidadeError {
  return new AlidadeError("store_error", `Postgres did not start (${program}): ${reason}`);
}
