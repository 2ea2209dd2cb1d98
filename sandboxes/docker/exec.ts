/**
 * One command in a container, through the engine's exec. Its traps, and what is done about them: a stream that ended is
 * not a command that finished (only an exit code says so); closing the stream does not end the command (it is killed by
 * name); a command that never started is no error of the API but an exit code and a text on stdout (its pid stays 0).
 *
 * A process inside that takes commands over one attached stream would answer in a millisecond, and is not used: its end
 * and exit code would be its own word instead of the engine's. The agent can trace and end a process of its own user and
 * answer in its place. A process of another user that is not root has no capabilities, so it can neither end the agent's
 * processes nor write its files. Before the agent or a work's tests run, no commands are left to be worth it: ARCHITECTURE counts them.
 */

import type { Duplex } from "node:stream";
import { setImmediate as ioRead, setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { AlidadeError, asAlidadeError, messageOf } from "../../base/errors.ts";
import { BoundedOutput } from "../../base/host/bounded-output.ts";
import { type CommandLimits, commandEnd } from "../../base/host/processes/command-end.ts";
import { withinTime } from "../../base/host/within-time.ts";
import type { ExecResult } from "../sandbox.ts";
import { demultiplex } from "./attached-stream.ts";
import { engineWork, isNotFound, statusOf } from "./client.ts";

export type Command = CommandLimits & {
  argv: string[];
  /** `uid:gid` */
  user: string;
  cwd: string;
  env: Record<string, string>;
  stdin?: string;
  max_output_bytes: number;
  keep_output?: "start" | "end";
  /** Ends the command with its process tree; called on time-out and abort. */
  kill: () => Promise<void>;
};

export type Finished = Omit<ExecResult, "out_of_memory">;

/** Looked at beside the stream: engines keep it open for a child that was left in the background. A look costs 1 ms. */
const lookMs = 500;
/** Output that is still on its way when the command is over comes without pauses of this length. */
const silenceMs = 200;
/** What starting a command costs the engine on a loaded machine. */
const startMs = 150;
/** The engine closes the stream first and then writes down how the command ended, on a loaded machine some time later. */
const recordMs = 5_000;
/** A killed process's last output arrives within this. */
const killGraceMs = 5_000;

export async function runCommand(docker: Docker, containerId: string, command: Command): Promise<Finished> {
  command.signal?.throwIfAborted();
  const started = performance.now();
  const { exec, stream } = await start(docker, containerId, command);
  const stdout = new BoundedOutput(command.max_output_bytes, command.keep_output);
  const stderr = new BoundedOutput(command.max_output_bytes, command.keep_output);
  const heard = { at: performance.now() };
  const ended = drain(stream, stdout, stderr, heard);
  try {
    const why = await commandEnd(ended, command, finishedUnseen(exec, heard));
    if (why === "timeout" || why === "abort") {
      await command.kill();
      await withinTime(ended, killGraceMs);
    }
    if (why === "abort")
      throw new AlidadeError("cancelled", `The command was cancelled: ${command.argv.join(" ")}`, { cause: command.signal?.reason });
    const exit = why === "timeout" ? null : await exitOf(exec, stdout, stderr);
    return {
      exit_code: exit,
      stdout: stdout.toString(),
      stderr: stderr.toString(),
      timed_out: why === "timeout",
      dropped_bytes: stdout.dropped + stderr.dropped,
      duration_ms: performance.now() - started,
    };
  } finally {
    stream.destroy();
  }
}

/** Starts a process with its streams attached. Throws typed errors for a container that is gone. */
export async function attach(
  docker: Docker,
  containerId: string,
  command: Pick<Command, "argv" | "user" | "cwd" | "env" | "signal">,
  stdin: boolean,
): Promise<{ exec: Docker.Exec; stream: Duplex }> {
  try {
    const exec = await docker.getContainer(containerId).exec({
      Cmd: command.argv,
      User: command.user,
      WorkingDir: command.cwd,
      Env: Object.entries(command.env).map(([name, value]) => `${name}=${value}`),
      AttachStdin: stdin,
      AttachStdout: true,
      AttachStderr: true,
    });
    const stream = await exec.start({ hijack: true, stdin });
    // Its reader sees a torn stream end; a command that does not read its input is no fault.
    stream.on("error", () => {});
    return { exec, stream };
  } catch (error) {
    // 409: not running, or paused. 404: removed. Podman answers 500 for one that does not run; other errors quote the command.
    const status = statusOf(error);
    if (status === 404 || status === 409 || (status === 500 && /container state improper/.test(messageOf(error)))) {
      throw new AlidadeError("sandbox_died", `The sandbox's container is not running any more: ${messageOf(error)}`, { cause: error });
    }
    throw asAlidadeError(error, "sandbox_error", `Starting ${command.argv[0]} in the sandbox: `);
  }
}

/** Keeps its place in the engine's line until the command shows itself, for the engine answers before it has done the work. */
async function start(docker: Docker, containerId: string, command: Command): Promise<{ exec: Docker.Exec; stream: Duplex }> {
  const leave = await engineWork(docker).enter(command.signal);
  try {
    const attached = await attach(docker, containerId, command, command.stdin !== undefined);
    if (command.stdin !== undefined) attached.stream.end(command.stdin);
    const quiet = setTimeout(leave, startMs);
    attached.stream.once("readable", () => {
      clearTimeout(quiet);
      leave();
    });
    return attached;
  } catch (error) {
    leave();
    throw error;
  }
}

async function drain(stream: Duplex, stdout: BoundedOutput, stderr: BoundedOutput, heard: { at: number }): Promise<void> {
  try {
    for await (const { stream: name, bytes } of demultiplex(stream)) {
      heard.at = performance.now();
      (name === "stdout" ? stdout : stderr).push(bytes);
    }
  } catch {
    // A torn stream ends the reading; the exit code decides what it means.
  }
}

/** Resolves once the engine says that the command is over and its last output has come. */
function finishedUnseen(exec: Docker.Exec, heard: { at: number }): (over: AbortSignal) => Promise<void> {
  return async (over) => {
    const pause = (milliseconds: number) => sleep(milliseconds, undefined, { signal: over }).catch(() => {});
    while (!over.aborted) {
      await pause(lookMs);
      if (over.aborted || !(await isOver(exec))) continue;
      // A child in the background may print for ever; a command's own output was in the pipe before it ended.
      const patience = performance.now() + killGraceMs;
      do {
        await pause(silenceMs);
        // A process that was held up fires its timers before it reads what has come meanwhile.
        await ioRead();
      } while (!over.aborted && performance.now() - heard.at < silenceMs && performance.now() < patience);
      break;
    }
  };
}

async function isOver(exec: Docker.Exec): Promise<boolean> {
  try {
    const state = await exec.inspect();
    return !state.Running && state.ExitCode !== null;
  } catch (error) {
    return isNotFound(error); // the engine restarted, or the container was removed
  }
}

/** The exit code; null when the engine lost the command, as it does when it restarts. */
async function exitOf(exec: Docker.Exec, stdout: BoundedOutput, stderr: BoundedOutput): Promise<number | null> {
  const patience = performance.now() + recordMs;
  do {
    const state = await exec.inspect().catch(() => null);
    if (state === null) return null;
    if (!state.Running && state.ExitCode !== null) {
      // A pid that is still 0: it never ran, and stdout is the runtime's complaint.
      if (state.Pid === 0 && state.ExitCode >= 126) return neverRan(state.ExitCode, stdout, stderr);
      return state.ExitCode;
    }
    await sleep(25);
  } while (performance.now() < patience);
  return null;
}

/** As a shell has it: 127 for a command that is not there, 126 for one that cannot be run, the reason on stderr. */
function neverRan(exitCode: number, stdout: BoundedOutput, stderr: BoundedOutput): number {
  stderr.push(stdout.take());
  return /executable file not found|no such file or directory/i.test(stderr.toString()) ? 127 : exitCode;
}
