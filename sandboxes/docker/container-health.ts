/** Whether a container lives, and what the end of a command in it means. */
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { AlidadeError, asAlidadeError } from "../../base/errors.ts";
import type { Limits } from "../../base/schema/task.ts";
import { isNotFound } from "./client.ts";
import type { Finished } from "./exec.ts";
import { Watchdog } from "./watchdog.ts";

/** One of these is the container's own count of processes that the out-of-memory killer ended (cgroup v2, v1). */
const readOutOfMemory = ["cat", "/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"];

/** How often the engine is asked, 100 ms apart, where its first answer may be too early. */
const looks = 10;
/** How long to ask if root inside may have removed the programs that the question needs. */
const brokenMs = 5_000;

export class ContainerHealth {
  readonly #container: Docker.Container;
  readonly #limits: Pick<Limits, "disk_mb" | "memory_mb">;
  readonly #watchdog: Watchdog | null;
  readonly #mayBreak: boolean;
  readonly #runAsGuard: (argv: string[]) => Promise<Finished>;
  #outOfMemoryKills = 0;

  /**
   * `isWatched`: its layer has no limit of its own. `mayBreak`: the agent can replace programs of the image. `runAsGuard`: a
   * command of ours, which the agent cannot signal.
   */
  constructor(
    container: Docker.Container,
    limits: Pick<Limits, "disk_mb" | "memory_mb">,
    { isWatched, mayBreak }: { isWatched: boolean; mayBreak: boolean },
    runAsGuard: (argv: string[]) => Promise<Finished>,
  ) {
    this.#container = container;
    this.#limits = limits;
    this.#mayBreak = mayBreak;
    this.#watchdog = isWatched ? new Watchdog(container, limits.disk_mb) : null;
    this.#runAsGuard = runAsGuard;
  }

  /** Ends the watchdog, where there is one. */
  stop(): void {
    this.#watchdog?.stop();
  }

  /**
   * What else a command's end means; says whether the out-of-memory killer was at work in it. Throws as `checkRunning`, and
   * `sandbox_error` for a command that the engine lost.
   */
  async checkAfter(finished: Finished, argv: string[]): Promise<boolean> {
    const command = `"${argv.join(" ").slice(0, 200)}"`;
    await this.#watchdog?.look(); // a short command writes much between two looks
    await this.checkRunning(`${command} ran in it`);
    if (finished.exit_code === 0) return false;
    const kills = await this.#outOfMemoryKillsSeen(`${command} ran in it`);
    if (finished.exit_code !== null || finished.timed_out) return kills > 0;
    await this.#stillRunning(`${command} ran in it`);
    throw new AlidadeError(
      "sandbox_error",
      `The container engine lost the command ${command}: it may have restarted, or the connection to it ended.`,
    );
  }

  /**
   * Throws `sandbox_died`, `sandbox_out_of_memory` or `sandbox_disk_full` when the container is gone. Asked after files were
   * moved too: the engine reads and writes a stopped container without a word, and its memory file systems are then empty
   * new ones.
   */
  async checkRunning(what: string): Promise<void> {
    const state = await this.#container.inspect().then(
      ({ State }) => State,
      (error: unknown) => {
        if (isNotFound(error)) return null;
        throw asAlidadeError(error, "sandbox_error", `The container engine was not reached when ${what}: `);
      },
    );
    if (state?.Running && !this.#watchdog?.barked) return;
    if (this.#watchdog?.barked) {
      throw new AlidadeError(
        "sandbox_disk_full",
        `The sandbox wrote more than limits.disk_mb (${this.#limits.disk_mb}) and was ended while ${what}.`,
      );
    }
    if (state?.OOMKilled) {
      const limit = `limits.memory_mb is ${this.#limits.memory_mb}`;
      throw new AlidadeError("sandbox_out_of_memory", `The sandbox ran out of memory and ended while ${what} (${limit}).`);
    }
    const how = state === null ? "it was removed" : `exit code ${state.ExitCode}`;
    throw new AlidadeError("sandbox_died", `The sandbox's container ended while ${what} (${how}).`);
  }

  /** Asked again where no process could be started for the question: the agent's may have reached the limit of pids. */
  async #outOfMemoryKillsSeen(what: string): Promise<number> {
    const began = performance.now();
    for (let look = 1; ; look += 1) {
      try {
        return await this.#newOutOfMemoryKills();
      } catch (error) {
        await this.checkRunning(what);
        const isLast = look === looks || (this.#mayBreak && performance.now() - began > brokenMs);
        // The agent did this itself. It is no failure of the machine, and nothing is known of the memory.
        if (isLast && this.#mayBreak) return 0;
        if (isLast) throw error;
        await sleep(100);
      }
    }
  }

  /** A container that is killed ends its commands a moment before the engine says that it is not running. */
  async #stillRunning(what: string): Promise<void> {
    for (let look = 0; look < looks; look += 1) {
      await this.checkRunning(what);
      await sleep(100);
    }
  }

  /** A process that was killed for memory leaves no other trace than the kernel's own count. */
  async #newOutOfMemoryKills(): Promise<number> {
    // Runs as the guard, because a process of the agent may be killing all processes of its own user.
    const { stdout, exit_code } = await this.#runAsGuard(readOutOfMemory);
    const match = /^oom_kill (\d+)$/m.exec(stdout);
    // 1: one file of the two is always missing. More, or nothing, is no answer of cat.
    if (match === null && exit_code !== 1) throw new AlidadeError("sandbox_error", "The sandbox does not run commands any more.");
    if (match === null) return 0;
    const total = Number(match[1]);
    const fresh = total - this.#outOfMemoryKills;
    this.#outOfMemoryKills = total;
    return fresh;
  }
}
